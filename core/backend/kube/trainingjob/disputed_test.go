package trainingjob

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDisputed(t *testing.T) {
	const main = `{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 2}}}`
	for name, tc := range map[string]struct {
		template string
		want     []string
	}{
		"none":                         {`{"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": 4, "example.com/nic": 1}}}]}}`, nil},
		"the same":                     {`{"spec": {"containers": [` + main + `]}}`, nil},
		"the same, as text":            {`{"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]}}`, nil},
		"no template":                  {`{"spec": []}`, nil},
		"the same for what runs first": {`{"spec": {"initContainers": [` + main + `], "containers": [` + main + `]}}`, nil},
		"more": {`{"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 4}, "requests": {"nvidia.com/gpu": 4}}}]}}`, []string{
			"spec.template.spec.containers[0].resources: asks for 4 nvidia.com/gpu, and replicas.devicesPerReplica is 2; leave it out here: the scheduler says it",
		}},
		"none on purpose": {`{"spec": {"containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": 0}}}]}}`, []string{
			"spec.template.spec.containers[0].resources: asks for 0 nvidia.com/gpu, and replicas.devicesPerReplica is 2; leave it out here: the scheduler says it",
		}},
		"in another container": {`{"spec": {"containers": [{"name": "a"}, ` + main + `]}}`, []string{
			"spec.template.spec.containers[1].resources: asks for 2 nvidia.com/gpu, and the devices of a pod are its first container's; leave it out",
		}},
		"in a sidecar": {`{"spec": {"initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"limits": {"nvidia.com/gpu": 1}}}], "containers": [{"name": "a"}]}}`, []string{
			"spec.template.spec.initContainers[0].resources: asks for 1 nvidia.com/gpu, and the devices of a pod are its first container's; leave it out",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			j := job(func(s *Spec) { s.Replicas.DevicesPerReplica, s.Template.Raw = 2, []byte(tc.template) })
			var got []string
			for _, p := range j.Disputed("nvidia.com/gpu") {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			j.Spec.Adopts = &Adopts{Kind: "Job"}
			if got := j.Disputed("nvidia.com/gpu"); len(got) > 0 {
				t.Errorf("of pods of others: %v", got)
			}
		})
	}
}
