package local

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// What is wrong with the settings of pools is told at once, each with its place.
func TestPoolSettings(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		config Config
		want   []string
	}{
		"right": {config: Config{Pools: []Pool{{Pool: "p", Notice: time.Second}}, Evict: []Eviction{{Node: "p-0"}}}},
		"twice": {
			config: Config{Pools: []Pool{{Pool: "p"}, {Pool: "p"}}, Evict: []Eviction{{Node: "p-0"}, {Node: "p-0"}}},
			want:   []string{`pools[1].pool: pool "p" is listed twice`, `evict[1].node: node "p-0" is listed twice`},
		},
		"all fail at once":       {config: Config{Pools: []Pool{{Pool: "p", Fails: 1}}}, want: []string{"pools[0].fails: of nodes that come at once not all can fail: the next one would be asked for at once, for ever"}},
		"all fail after a while": {config: Config{Pools: []Pool{{Pool: "p", Fails: 1, Provisioning: time.Second}}}},
		"taken away at once":     {config: Config{Pools: []Pool{{Pool: "p", Evictions: time.Hour, Notice: time.Hour + 1, Provisioning: time.Minute}}}, want: []string{"pools[0].notice: must be at most evictions, 1h0m0s, or most nodes would drain before they are of use, got 1h0m0.000000001s"}},
		"half of its life":       {config: Config{Pools: []Pool{{Pool: "p", Evictions: time.Hour, Notice: time.Hour}}}},
		"a notice of nothing":    {config: Config{Pools: []Pool{{Pool: "p", Notice: time.Second}}}, want: []string{"pools[0].notice: needs evictions"}},
		"unknown": {
			config: Config{Pools: []Pool{{Pool: "q"}}, Evict: []Eviction{{Node: "p"}, {Node: "p-x"}, {Node: "q-1"}, {Node: "p-01"}, {Node: "p--1"}, {Node: "p-"}}},
			want: []string{
				`unknown pool "q"`, `node "p" is of no pool`, `node "p-x" is of no pool`, `node "q-1" is of no pool`,
				`node "p-01" is of no pool`, `node "p--1" is of no pool`, `node "p-" is of no pool`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range tc.config.checkPools() {
				got = append(got, err.Error())
			}
			for _, d := range tc.config.checkPoolNames(slots(1, 0, 1)) {
				got = append(got, d.Summary)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Who names a node that no pool can have is told which names there are, and the one that was most likely meant.
func TestHintsOfEvictions(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		node  string
		pools []string
		want  string
	}{
		"another letter":   {"spere-3", []string{"spare", "late"}, `did you mean "spare-3"? valid nodes: spare-0, spare-1, …, late-0, late-1, …`},
		"no hyphen":        {"late12", []string{"spare", "late"}, `did you mean "late-12"? valid nodes: spare-0, spare-1, …, late-0, late-1, …`},
		"a leading zero":   {"late-01", []string{"late"}, `did you mean "late-1"? valid nodes: late-0, late-1, …`},
		"no number":        {"late", []string{"late"}, `did you mean "late-0"? valid nodes: late-0, late-1, …`},
		"nothing like it":  {"gpu-node-7", []string{"p"}, `valid nodes: p-0, p-1, …`},
		"without any pool": {"gpu-7", nil, "the cluster has no pools"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (&Eviction{Node: tc.node}).hint(tc.pools); got != tc.want {
				t.Errorf("hint %q, want %q", got, tc.want)
			}
		})
	}
}

// Pools get devices that nobody else has, and no more than there are.
func TestDevicesOfPools(t *testing.T) {
	t.Parallel()
	found := foundDevices()
	pool := func(most, devices int) *core.Cluster {
		return &core.Cluster{
			Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "a", Devices: 1}, {ID: 1, Name: "p-0", Devices: devices, Pool: "p"}},
			Pools: []core.Pool{{Name: "p", Devices: devices, Max: most}},
		}
	}
	cases := map[string]struct {
		cluster *core.Cluster
		kept    *poolRecord
		want    [][]string
		wantErr string
	}{
		"all that there are": {cluster: pool(2, 1), want: [][]string{{idB}, {idD}}},
		"two at once":        {cluster: pool(1, 2), want: [][]string{{idB, idD}}},
		"more than there are": {
			cluster: pool(4, 1), wantErr: `cluster.pools[0].max: pool "p" wants up to 4 nodes of 1 of type "t4", and this machine has devices for 2 of them`,
		},
		"those that joined before": {
			cluster: pool(2, 1), kept: &poolRecord{Slots: []slot{{Node: 2, Pool: "p", Names: []string{idB}}}}, want: [][]string{{idD}, {idB}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := adopt(tc.cluster, nil, &supply{found: &found, taken: map[string]bool{}, kept: tc.kept})
			if tc.wantErr != "" || err != nil {
				if err == nil || tc.wantErr == "" || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if !slices.EqualFunc(d.spots["p"], tc.want, slices.Equal[[]string]) {
				t.Errorf("the pool has %v, want %v", d.spots["p"], tc.want)
			}
			all := d.all()
			if slices.Sort(all); len(slices.Compact(all)) != len(d.all()) {
				t.Errorf("a device is listed twice: %v", d.all())
			}
		})
	}
}
