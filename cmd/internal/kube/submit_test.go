package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/backend"
)

// A 0 where none may be is told: it would be sent as if it were left out, and mean 1.
func TestZeros(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"none":              {"{requested: 2, template: {}}", nil},
		"where it is right": {"{work: 0, graceSeconds: 0, template: {spec: {priority: 0}}}", nil},
		"replicas":          {"{requested: 0, replicas: {min: 0, max: 0, devicesPerReplica: 0}}", []string{"replicas.devicesPerReplica", "replicas.max", "replicas.min", "requested"}},
		"a weight":          {"{weight: 0.0}", []string{"weight"}},
		"a batch":           {"{batch: {min: 0, max: 8}}", []string{"batch.min"}},
		"no object":         {"{replicas: 0}", nil}, // the type is told
	} {
		t.Run(name, func(t *testing.T) {
			documents, problems := split(backend.JobFile{Name: "job.yaml", Text: []byte(
				"apiVersion: quartet.sched/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\nspec: " + tc.spec + "\n")})
			if len(problems) > 0 || len(documents) != 1 {
				t.Fatal(problems)
			}
			_, problems = object(documents[0])
			var got []string
			for _, p := range problems {
				if p.Summary == "is 0" {
					if p.Position.Line != 4 {
						t.Errorf("%s is in line %d", p.Path, p.Position.Line)
					}
					got = append(got, p.Path[len("spec."):])
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
