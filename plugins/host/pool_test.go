package host_test

import (
	"os"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/plugins/faulty"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// TestAPoolThrowsAwayWhatFailed asks a component that fails, and then a new one in the same place.
func TestAPoolThrowsAwayWhatFailed(t *testing.T) {
	t.Parallel()
	pool, err := host.NewPool(t.Context(), faultyBinary(serveFaulty), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if pool.CallTimeout != 5*time.Second {
		t.Errorf("calls may take %v, want 5 s", pool.CallTimeout)
	}
	told, err := pool.Describe()
	if err != nil {
		t.Fatal(err)
	}
	info, _ := told.Component(stagev1.Stage_STAGE_ALLOCATION, "faulty")
	f := host.PoolFactory[core.Allocator](pool, info)
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Round(faulty.Round).Jobs(coretest.MakeJob("only").Replicas(1).Waiting()).Obj()
	ask := func(fault string) error {
		pool.CallTimeout = 20 * time.Second // on a busy machine too
		if fault == "hang" {
			pool.CallTimeout = 300 * time.Millisecond
		}
		config, problems := f.Decode(map[string]any{"fault": fault})
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		policy, err := f.New(config, core.Settings{ID: "allocation/faulty"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = policy.Allocate(t.Context(), v, coretest.Candidates(v, coretest.Rigid))
		return err
	}
	for fault, want := range map[string]string{
		"hang": `plugin "faulty": call timed out after 300ms`,
		"exit": `plugin "faulty": the process died: exit status 3; its last output: "the licence server is gone"`,
	} {
		if err := ask(fault); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", fault, err, want)
		}
		if err := ask(""); err != nil {
			t.Errorf("after %s: %v", fault, err)
		}
	}
}

// A pool whose plugin has no channel ends the exchange of a component when the next one takes its process.
func TestAPoolEndsTheExchangeBefore(t *testing.T) {
	path := program(t, 0o700, "unset "+wire.EnvChannel, "exec '"+os.Args[0]+"' "+serveFaulty)
	pool, err := host.NewPool(t.Context(), host.Binary{Name: "faulty", Path: path, StartTimeout: 20 * time.Second}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	told, err := pool.Describe()
	if err != nil {
		t.Fatal(err)
	}
	info, _ := told.Component(stagev1.Stage_STAGE_ALLOCATION, "faulty")
	f := host.PoolFactory[core.Allocator](pool, info)
	config, problems := f.Decode(nil)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	made := func() core.Allocator {
		policy, err := f.New(config, settings("allocation/faulty"))
		if err != nil {
			t.Fatal(err)
		}
		return policy
	}
	first := made()
	if _, err := decided(t, first); err != nil {
		t.Errorf("the first: %v", err)
	}
	second := made()
	if grants, err := decided(t, second); err != nil || len(grants) != 1 {
		t.Errorf("the second: %v, error %v", grants, err)
	}
	if grants, err := decided(t, first); err == nil {
		t.Errorf("the first still answers %v", grants)
	}
}
