package local

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/workload"
)

// filledStore is a store with jobs, rounds, runs and orders on several pages of each kind, as a file and as its records.
func filledStore(t testing.TB) (file []byte, records map[string]string) {
	t.Helper()
	dir := t.TempDir()
	s, err := openStore(dir, false, lockWait)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	l := journal.Open(s, "test", "")
	must(l.Reset(&journal.Meta{EpochUnix: 1}))
	var jobs []*workload.Job
	var started []*job
	for i := range 200 {
		spec := core.JobSpec{ID: core.JobID(i), Name: fmt.Sprintf("job-%d", i), Command: []string{"true"}, Requested: 1}
		jobs = append(jobs, &workload.Job{Spec: spec})
		started = append(started, &job{Job: jobs[i], run: run{Number: 1, Round: i, Names: []string{"0"}}})
	}
	must(l.Submit(jobs))
	appendRounds(t, l, rounds)
	must(s.begin(started))
	must(l.Cancel(7))
	must(l.SetHealth("a", core.Draining))
	records = recordsOf(t, s)
	must(s.close())
	file, err = os.ReadFile(filepath.Join(dir, storeFile))
	must(err)
	return file, records
}

func recordsOf(t testing.TB, s *store) map[string]string {
	t.Helper()
	records := map[string]string{}
	if err := s.db.View(func(tx *bolt.Tx) error {
		for _, name := range buckets {
			if err := tx.Bucket([]byte(name)).ForEach(func(k, v []byte) error {
				records[fmt.Sprintf("%s %x", name, k)] = string(v)
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return records
}

// judge opens a damaged file: it is refused, or all that was recorded is there, and stays when more is recorded.
func judge(t testing.TB, dir string, damaged []byte, want map[string]string) (opened bool) {
	t.Helper()
	path := filepath.Join(dir, storeFile)
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openStore(dir, false, lockWait)
	if err != nil {
		if _, refused := errors.AsType[core.Diagnostics](err); !refused {
			t.Errorf("error %v, want diagnostics", err)
		}
		return false
	}
	if diff := cmp.Diff(want, recordsOf(t, s)); diff != "" {
		t.Errorf("a damaged store was opened (-want +got):\n%s", diff)
	}
	l := journal.Open(s, "test", "")
	for range rounds {
		l.BeginRound()
	}
	appendRounds(t, l, 20)
	after := recordsOf(t, s)
	for record, text := range want {
		if after[record] != text && record != countRecord {
			t.Errorf("record %s was lost when more was recorded", record)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if s, err = openStore(dir, false, lockWait); err != nil {
		t.Fatalf("a store was damaged by what was recorded after it was opened: %v", err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	return true
}

// rounds are those of a filled store.
const rounds = 60

// appendRounds records rounds.
func appendRounds(t testing.TB, l *journal.Log, n int) {
	t.Helper()
	for range n {
		i := l.BeginRound()
		seen := &journal.Seen{NowSeconds: float64(i), Events: []journal.Event{{Kind: core.JobSubmitted, Job: core.JobID(i)}}}
		if err := l.Record(seen, []core.Change{on(core.JobID(i), 1)}); err != nil {
			t.Fatal(err)
		}
	}
}

var countRecord = fmt.Sprintf("%s %x", metaBucket, countKey)

var damages = flag.Int("local.damages", 40, "how often TestADamagedStoreIsRefused damages a store, of each kind")

func TestADamagedStoreIsRefused(t *testing.T) {
	t.Parallel()
	file, want := filledStore(t)
	size := os.Getpagesize()
	dir := t.TempDir()
	if !judge(t, dir, file, want) {
		t.Fatal("a store that nobody damaged is refused")
	}
	for at := size; at < len(file); at += size { // an empty file is a new store, and the last pages may hold nothing
		if judge(t, dir, file[:at], want) && at < len(file)/2 {
			t.Errorf("a store cut short after %d of %d bytes was opened", at, len(file))
		}
	}
	var rng *rand.Rand
	pages := len(file) / size
	for name, damage := range map[string]func(page []byte){
		"noise": func(page []byte) {
			for i := range page {
				page[i] = byte(rng.Uint32())
			}
		},
		"zeros":          func(page []byte) { clear(page) },
		"another page":   func(page []byte) { copy(page, file[rng.IntN(pages)*size:][:size]) },
		"a bit":          func(page []byte) { page[rng.IntN(size)] ^= 1 << rng.IntN(8) },
		"a number":       func(page []byte) { copy(page[rng.IntN(64):], []byte{0xff, 0xff, 0xff, 0xff}) },
		"another number": func(page []byte) { page[rng.IntN(128)] = byte(rng.IntN(pages)) },
	} {
		t.Run(name, func(t *testing.T) {
			rng = rand.New(rand.NewPCG(*seed, 0))
			opened := 0
			for range *damages {
				damaged := append([]byte{}, file...)
				damage(damaged[rng.IntN(pages)*size:][:size])
				if judge(t, dir, damaged, want) {
					opened++
				}
			}
			t.Logf("%d of %d opened", opened, *damages) // the others hit what is in use
			if opened == *damages {
				t.Error("no damage was found")
			}
		})
	}
}

// A scheduler may be killed before it has made the buckets of a new store.
func TestAStoreWithoutBucketsIsNew(t *testing.T) {
	dir := t.TempDir()
	db, err := bolt.Open(filepath.Join(dir, storeFile), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := openStore(dir, false, lockWait)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(journal.Open(s, "", "").SetMeta(&journal.Meta{}), s.close()); err != nil {
		t.Error(err)
	}
}

// A store stays locked while it is checked, and after it.
func TestACheckKeepsTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), storeFile)
	content, _ := filledStore(t)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	ours, theirs := open(), open()
	if !lock(ours) {
		t.Fatal("the store is locked by nobody")
	}
	checked := make(chan error)
	go func() { checked <- checkStore(ours) }()
	for done := false; !done; {
		select {
		case err := <-checked:
			if done = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
		if lock(theirs) {
			t.Fatal("somebody else got the lock")
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, content) {
		t.Errorf("the check wrote to the store (error %v)", err)
	}
}

// BenchmarkCheck checks stores of some sizes, one process each.
func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{0, 1000, 100_000} {
		b.Run(fmt.Sprintf("%d rounds", n), func(b *testing.B) {
			s, err := openStore(b.TempDir(), false, lockWait)
			if err != nil {
				b.Fatal(err)
			}
			s.db.NoSync = true
			appendRounds(b, journal.Open(s, "test", ""), n)
			if err := s.close(); err != nil {
				b.Fatal(err)
			}
			file, err := os.OpenFile(s.path, os.O_RDWR, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close()
			info, err := file.Stat()
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := checkStore(file); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(info.Size()), "file-B")
		})
	}
}

// FuzzStore overwrites a place of a store with anything.
func FuzzStore(f *testing.F) {
	file, want := filledStore(f)
	f.Add(uint32(0), []byte{0})
	f.Add(uint32(os.Getpagesize()+16), []byte("garbage"))
	f.Add(uint32(len(file)/2), make([]byte, os.Getpagesize()))
	f.Fuzz(func(t *testing.T, at uint32, what []byte) {
		damaged := append([]byte{}, file...)
		copy(damaged[int(at)%len(damaged):], what)
		judge(t, t.TempDir(), damaged, want)
	})
}
