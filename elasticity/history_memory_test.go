package elasticity

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
)

// A policy that takes over knows what the one before left in the file, though that was left after it was made; not once it has told
// which file it read.
func TestAHistoryThatIsLeftMeanwhileIsRead(t *testing.T) {
	for name, tc := range map[string]struct {
		told bool
		want bool
	}{"asked": {false, true}, "told which it read": {true, false}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pool.yaml")
			before, after := remembering(t, path, nil), remembering(t, path, nil)
			if tc.told {
				after.FilesRead()
			}
			unknown := begins(t, remembering(t, path, nil), "a", trainingJob().Batch)
			trained(t, before, "a", truth, trainingJob().Batch, 1, 2, 4)
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}
			got := begins(t, after, "a", trainingJob().Batch)
			if knows := !cmp.Equal(got, unknown, cmpopts.EquateNaNs()); knows != tc.want {
				t.Errorf("it knows the history: %t, want %t", knows, tc.want)
			}
		})
	}
}

// A policy that took up what another had learned tells the same of jobs to come, and leaves the same.
func TestAHistoryIsHandedOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool.yaml")
	earlier := remembering(t, path, nil)
	trained(t, earlier, "a", truth, trainingJob().Batch, 1, 2, 4)
	if err := earlier.Close(); err != nil {
		t.Fatal(err)
	}
	before := remembering(t, path, nil)
	trained(t, before, "a", slower, trainingJob().Batch, 1, 2)
	trained(t, before, "b", truth, trainingJob().Batch, 1, 2, 4, 8)
	learned, err := before.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	after := remembering(t, path, nil)
	if err := after.Restore(learned); err != nil {
		t.Fatal(err)
	}
	again, err := after.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(learned), string(again)); diff != "" {
		t.Errorf("handed on again (-want +got):\n%s", diff)
	}
	for _, application := range []string{"a", "b", "c"} {
		want, got := begins(t, before, application, trainingJob().Batch), begins(t, after, application, trainingJob().Batch)
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("a job of %q (-want +got):\n%s", application, diff)
		}
	}
	want, err := encode(1, before.pool.merged(earlier.pool))
	if err != nil {
		t.Fatal(err)
	}
	got, err := encode(1, after.pool.merged(earlier.pool))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// What is of no use is not taken up.
func TestAHistoryOfAnotherIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool.yaml")
	before := remembering(t, path, nil)
	trained(t, before, "a", truth, trainingJob().Batch, 1, 2, 4)
	learned, err := before.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		to   *goodputAgent
		text string
		want string
	}{
		"another file": {remembering(t, path+"2", nil), string(learned), "the history is that of"},
		"no history":   {newGoodput(t, nil), string(learned), "not used any more"},
		"nothing":      {remembering(t, path, nil), "", "unexpected end"},
		"senseless":    {remembering(t, path, nil), strings.Replace(string(learned), `"PassSeconds":`, `"PassSeconds":-`, 1), "cannot be"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.to.Restore([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if tc.to.pool != nil && len(tc.to.pool.fresh) > 0 || tc.to.settled {
				t.Error("something of it was taken up")
			}
		})
	}
}

// What a job proved goes on to be so, and is counted once.
func TestWhatAJobProvedIsHandedOn(t *testing.T) {
	before := remembering(t, "", nil)
	trained(t, before, "a", truth, trainingJob().Batch, 1, 2, 4)
	j := trainingJob()
	j.ID, j.Application = 1, "a"
	respond(t, before, j)
	ran(j, truth, 1, 1, 64)
	respond(t, before, j)
	learned, err := before.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	was := before.pool.proofs[before.pool.live["a"]].confirmed
	after := remembering(t, "", nil)
	if err := after.Restore(learned); err != nil {
		t.Fatal(err)
	}
	want := respond(t, before, j)
	if diff := cmp.Diff(want, respond(t, after, j), cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("the job (-want +got):\n%s", diff)
	}
	if is := after.pool.proofs[after.pool.live["a"]].confirmed; is != was {
		t.Errorf("confirmed %d times, and then %d", was, is)
	}
	if after.agents[1].first != before.agents[1].first || before.agents[1].first == (core.Gradients{}) {
		t.Errorf("first statistics %v, want %v", after.agents[1].first, before.agents[1].first)
	}
}
