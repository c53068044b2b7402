package keeper

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/internal/testdisk"
)

const bytesInGB = 1 << 30

// The test program is also the keeper.
func TestMain(m *testing.M) {
	IfAsked()
	os.Exit(m.Run())
}

// kept is a run with a keeper, and no scheduler.
type kept struct {
	dir    string
	keeper *exec.Cmd
}

// cleaner is a test, or one draw of a property.
type cleaner interface {
	Helper()
	Fatal(args ...any)
	Cleanup(clean func())
	Fatalf(format string, args ...any)
}

// keepRun starts a keeper of replicas that run a script of the shell. Their output goes to the folder of the run.
func keepRun(t cleaner, dir string, replicas int, script string, o Orders) *kept {
	t.Helper()
	o.Command, o.Dir = []string{"/bin/sh", "-c", script}, dir
	if o.GraceSeconds == 0 {
		o.GraceSeconds = 30
	}
	for rank := range replicas {
		log := filepath.Join(dir, strconv.Itoa(rank))
		o.Replicas = append(o.Replicas, Replica{
			Environment: []string{"PATH=" + os.Getenv("PATH"), "RANK=" + strconv.Itoa(rank), agent.RendezvousVariable + "=" + dir + "/peers"}, Out: log + ".out", Err: log + ".err",
		})
	}
	child, err := Start(dir, &o, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{dir, child.command}
	t.Cleanup(func() {
		late := time.AfterFunc(time.Minute, func() { _ = k.keeper.Process.Kill() })
		defer late.Stop()
		_ = k.keeper.Process.Signal(syscall.SIGTERM) // it has ended, usually
		_ = k.keeper.Wait()
	})
	child.Begin()
	return k
}

// end is the final report of the keeper.
func (k *kept) end(t cleaner) Exit {
	t.Helper()
	late := time.AfterFunc(time.Minute, func() { _ = k.keeper.Process.Kill() })
	defer late.Stop()
	if err := k.keeper.Wait(); err != nil {
		t.Fatalf("the keeper: %v; %s", err, k.read(t, "keeper.log"))
	}
	e, _, err := FinalReport(k.dir)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (k *kept) read(t cleaner, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(k.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// eventually waits until something holds.
func eventually(t cleaner, what string, holds func() bool) {
	t.Helper()
	const attempts, interval = 6000, 10 * time.Millisecond
	for range attempts {
		if holds() {
			return
		}
		time.Sleep(interval)
	}
	t.Fatalf("%s: still not so", what)
}

// A run whose agent was asked to stop has not failed, whatever its replicas exit with, also when the signal comes late or never.
func TestWhoIsAskedToStopDoesNotFail(t *testing.T) {
	cases := map[string]struct {
		script string
		before bool // it is asked before it begins
		want   []int
	}{
		"exits with a code of its own": {"read x <gate; exit 75", false, []int{75}},
		"exits with 0":                 {"read x <gate; exit 0", false, []int{0}},
		"is asked before it begins":    {"read x <gate; exit 75", true, []int{75}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			gate := filepath.Join(dir, "gate")
			if err := syscall.Mkfifo(gate, 0o600); err != nil {
				t.Fatal(err)
			}
			nobody := Identity{} // whose signals reach nobody
			if tc.before {
				nobody.AskToStop(dir)
			}
			k := keepRun(t, dir, 1, tc.script, Orders{})
			open, err := os.OpenFile(gate, os.O_WRONLY, 0) // it runs
			if err != nil {
				t.Fatal(err)
			}
			nobody.AskToStop(dir)
			if err := open.Close(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Exit{Outcome: Stopped, Codes: tc.want}, k.end(t)); diff != "" {
				t.Errorf("final report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutputIsKeptByteForByte(t *testing.T) {
	rng := rand.NewChaCha8([32]byte{1})
	data := make([]byte, 3<<20+17)
	_, _ = rng.Read(data) // it never fails
	source := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(source, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Orders{"one file": {}, "rotated": {LogBytes: bytesInMB, LogFiles: 9}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			k := keepRun(t, dir, 2, "cat "+source+"; echo $RANK >&2", o)
			if diff := cmp.Diff(Exit{Outcome: Finished, Codes: []int{0, 0}}, k.end(t)); diff != "" {
				t.Errorf("final report (-want +got):\n%s", diff)
			}
			for rank := range 2 {
				var got []byte
				l := &logFile{path: filepath.Join(dir, strconv.Itoa(rank)+".out")}
				for n := o.LogFiles; n >= 0; n-- {
					text, _ := os.ReadFile(l.name(n))
					got = append(got, text...)
				}
				if !bytes.Equal(got, data) {
					t.Errorf("rank %d: %d bytes of output are not the %d that were written", rank, len(got), len(data))
				}
				if got, want := k.read(t, strconv.Itoa(rank)+".err"), fmt.Sprintln(rank); got != want {
					t.Errorf("rank %d complains %q, want %q", rank, got, want)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "0.out.1")); (err == nil) != (o.LogBytes > 0) {
				t.Errorf("an older file: %v", err)
			}
		})
	}
}

// A grandchild, and somebody outside of the run, may hold the output of a replica open.
func TestOutputThatIsHeldOpen(t *testing.T) {
	dir := t.TempDir()
	k := keepRun(t, dir, 1, `setsid sleep 60 & echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; echo last`, Orders{})
	eventually(t, "the replica runs", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "pid"))
		return bytes.HasSuffix(text, []byte("\n"))
	})
	outside, err := os.OpenFile(fmt.Sprintf("/proc/%s/fd/1", strings.TrimSpace(k.read(t, "pid"))), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	if _, err := outside.WriteString("outside\n"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Exit{Outcome: Finished, Codes: []int{0}}, k.end(t)); diff != "" {
		t.Errorf("final report (-want +got):\n%s", diff)
	}
	if got, want := k.read(t, "0.out"), "outside\nlast\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}

const fill = "cat /dev/zero > fill 2>/dev/null; "

func TestDiskIsFull(t *testing.T) {
	cases := map[string]struct {
		before bool // it is full when the keeper begins
		script string
		want   Exit
	}{
		"job fills it and ends well": {false, fill + "head -c 1000000 /dev/zero", Exit{Outcome: Finished, Codes: []int{0}}},
		"job fills it and fails":     {false, fill + "head -c 1000000 /dev/zero; exit 7", Exit{Outcome: Failed, Reason: "replica 0 exited with 7", Codes: []int{7}, Failed: []int{0}}},
		"output fills it":            {false, "head -c 3000000 /dev/zero", Exit{Outcome: Finished, Codes: []int{0}}},
		"job makes room":             {true, "head -c 1000000 /dev/zero; rm " + testdisk.Filling, Exit{Outcome: Finished, Codes: []int{0}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := testdisk.New(t, 1<<19)
			if tc.before {
				testdisk.Fill(t, dir, roomForTexts/2)
			}
			k := keepRun(t, dir, 1, tc.script, Orders{})
			got := k.end(t)
			if len(got.Warnings) != 1 || !strings.HasPrefix(got.Warnings[0], "0.out: ") || !strings.HasSuffix(got.Warnings[0], " bytes of output were dropped") {
				t.Errorf("warnings %q, want one of dropped output", got.Warnings)
			}
			got.Warnings = nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("final report (-want +got):\n%s", diff)
			}
		})
	}
}

// Where nothing can be reserved and nothing gets free the run is lost: no final report is better than half of one.
func TestDiskStaysFull(t *testing.T) {
	dir := testdisk.New(t, 1<<19)
	testdisk.Fill(t, dir, os.Getpagesize()) // for the orders
	k := keepRun(t, dir, 1, fill, Orders{})
	_ = k.keeper.Wait() // it cannot say how it went
	if _, err := os.Stat(filepath.Join(dir, exitFile)); !os.IsNotExist(err) {
		t.Errorf("a final report: %v", err)
	}
}

func TestTheFinalReportFitsItsReserve(t *testing.T) {
	const replicas = 1000
	path := filepath.Join(t.TempDir(), exitFile)
	r, err := newReserve(path, replicas)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(r.path)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("\x01", 10000) // six characters each in JSON
	if err := r.become(path, Exit{Failed, long, slices.Repeat([]int{137}, replicas), slices.Repeat([]string{long}, 10), slices.Repeat([]int{1000}, replicas), true}); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if after.Size() > before.Size() {
		t.Errorf("the final report has %d bytes, %d were reserved", after.Size(), before.Size())
	}
	var e Exit
	if err := ReadFile(path, &e); err != nil || e.Outcome != Failed || len(e.Codes) != replicas {
		t.Errorf("read %.100v: %v", e, err)
	}
}

// BenchmarkOutput measures how fast a replica's output gets to its file, straight and through the keeper.
func BenchmarkOutput(b *testing.B) {
	const most = 64 * bytesInMB // in a file
	text := []byte(strings.Repeat(strings.Repeat("x", 99)+"\n", 600))
	measure := func(b *testing.B, w io.Writer, end func()) {
		b.SetBytes(int64(len(text)))
		before := processorTime(syscall.RUSAGE_SELF)
		for b.Loop() {
			if _, err := w.Write(text); err != nil {
				b.Fatal(err)
			}
		}
		end()
		b.ReportMetric((processorTime(syscall.RUSAGE_SELF)-before).Seconds()/float64(b.N*len(text))*bytesInGB, "cpu-s/GB")
	}
	b.Run("straight", func(b *testing.B) {
		measure(b, newLogFile(filepath.Join(b.TempDir(), "0.out"), most, 1, io.Discard), func() {})
	})
	b.Run("keeper", func(b *testing.B) {
		var o output
		w, err := o.to(newLogFile(filepath.Join(b.TempDir(), "0.out"), most, 1, io.Discard))
		if err != nil {
			b.Fatal(err)
		}
		measure(b, w, func() {
			_ = w.Close()
			o.end()
		})
	})
}

// processorTime is what this process or its children have used.
func processorTime(who int) time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(who, &used) // it never fails
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkKeeper measures what a run costs, from its orders to its final report.
func BenchmarkKeeper(b *testing.B) {
	for name, o := range map[string]Orders{
		"without limits": {}, "with limits": {Limits: LimitsTry, CPUs: 1, MemoryBytes: 64 * bytesInMB},
	} {
		b.Run(name, func(b *testing.B) {
			before := processorTime(syscall.RUSAGE_CHILDREN)
			for b.Loop() {
				if e := keepRun(b, b.TempDir(), 1, "exit 0", o).end(b); e.Outcome != Finished {
					b.Fatal(e)
				}
			}
			b.ReportMetric((processorTime(syscall.RUSAGE_CHILDREN)-before).Seconds()*1000/float64(b.N), "cpu-ms/run")
		})
	}
}

// A run that is to end now is killed without a grace, with all that it left behind, also while it is being stopped.
func TestEndNow(t *testing.T) {
	for name, before := range map[string][]syscall.Signal{"while it runs": nil, "while it is stopped": {syscall.SIGTERM}, "told twice": {endNow}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			k := keepRun(t, dir, 2, `trap '' TERM; setsid sleep 600 & echo $! > child-$RANK; while :; do sleep 1; done`, Orders{})
			var children []int
			eventually(t, "the replicas run", func() bool {
				children = nil
				for rank := range 2 {
					text, _ := os.ReadFile(filepath.Join(dir, fmt.Sprint("child-", rank)))
					if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
						children = append(children, pid)
					}
				}
				return len(children) == 2
			})
			for _, s := range append(before, endNow) {
				if err := k.keeper.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(Exit{Outcome: Stopped, Codes: []int{137, 137}}, k.end(t)); diff != "" {
				t.Errorf("final report (-want +got):\n%s", diff)
			}
			for _, pid := range children {
				if _, alive := identify(pid); alive {
					t.Errorf("child %d is left", pid)
				}
			}
		})
	}
}

// behaviours are scripts of replicas.
var behaviours = []string{
	"exec sleep 600",
	"trap '' TERM; while :; do sleep 0.01; done",
	"trap 'exit 75' TERM; while :; do sleep 0.01; done",
	"setsid sleep 600 & exec sleep 600",
	"setsid sleep 600 & exit 0",
	"exit 0",
	"exit 3",
}

// Whatever replicas do and a keeper is told, in any order, at the end no process of the run is left and all others are there.
func TestAnySequenceOfProcesses(t *testing.T) {
	foreign := exec.Command("sleep", "600")
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = foreign.Process.Kill()
		_ = foreign.Wait() // it was killed
	}()
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "run")
		if err != nil {
			t.Fatal(err)
		}
		scripts := rapid.SliceOfN(rapid.SampledFrom(behaviours), 1, 3).Draw(t, "replicas")
		script := "case $RANK in "
		for rank, s := range scripts {
			script += fmt.Sprintf("%d) %s;; ", rank, s)
		}
		k := keepRun(t, dir, len(scripts), script+"esac", Orders{GraceSeconds: 0.01})
		eventually(t, "the keeper takes signals", func() bool { return Began(dir) })
		id, _ := identify(k.keeper.Process.Pid)
		tell := map[string]func(){
			"ask": func() { id.AskToStop(dir) }, "stop": id.Terminate, "end now": id.EndNow,
			"ask, and the signal is lost": func() { Identity{}.AskToStop(dir) },
		}
		orders := rapid.SliceOfN(rapid.SampledFrom([]string{"ask", "stop", "end now", "ask, and the signal is lost"}), 0, 3).Draw(t, "orders")
		for _, order := range append(orders, rapid.SampledFrom([]string{"ask", "stop", "end now"}).Draw(t, "last order")) {
			tell[order]()
		}
		e := k.end(t)
		if left := Find(dir); len(left) > 0 {
			t.Errorf("left at the end: %+v", left)
		}
		if slices.Contains(e.Codes, -1) {
			t.Errorf("%+v: a replica did not run", e)
		}
		if _, alive := identify(foreign.Process.Pid); !alive {
			t.Fatal("a foreign process was killed")
		}
	})
}
