package exchange

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"
)

// writers write a trace in each format that it can be read in again.
var writers = map[string]func(io.Writer, *Trace) error{
	CSV: WriteCSV,
	SWF: func(w io.Writer, t *Trace) error { _, err := WriteSWF(w, t); return err },
	Batsim: func(w io.Writer, t *Trace) error {
		_, err := WriteBatsim(w, t, 1)
		return err
	},
}

// again is the text of a trace after it was written in a format and read back.
func again(t interface{ Fatalf(string, ...any) }, format string, trace *Trace) (text string, read *Trace) {
	var b bytes.Buffer
	if err := writers[format](&b, trace); err != nil {
		t.Fatalf("write %s: %v", format, err)
	}
	read, counts, err := Import(context.Background(), "log", bytes.NewReader(b.Bytes()), Options{From: format})
	if err != nil {
		t.Fatalf("read %s: %v\n%s", format, err, b.String())
	}
	if counts.Kept != trace.Len() {
		t.Fatalf("%s: %d of %d jobs come back: %+v\n%s", format, counts.Kept, trace.Len(), counts.Dropped, b.String())
	}
	return b.String(), read
}

// What was read in a format is written in it and read again without a difference.
func TestRoundTrip(t *testing.T) {
	text := rapid.Map(rapid.StringMatching(`[a-zé"',;| 0-9:\\<]{0,8}`), strings.TrimSpace)
	known := rapid.OneOf(rapid.Just(nan), rapid.Float64Range(0.001, 1e6))
	for format := range writers {
		t.Run(format, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				trace := &Trace{Epoch: float64(rapid.Uint32().Draw(t, "begin"))}
				for i := range rapid.IntRange(1, 12).Draw(t, "jobs") {
					r := Record{
						Name: fmt.Sprintf("job %d", i), Tenant: text.Draw(t, "tenant"), Application: text.Draw(t, "application"),
						Outcome: rapid.SampledFrom(append(Outcomes, "")).Draw(t, "outcome"), Submit: rapid.Float64Range(0, 1e6).Draw(t, "submit"),
						Start: nan, Duration: rapid.Float64Range(0.001, 1e6).Draw(t, "duration"), Limit: known.Draw(t, "limit"),
						Estimate: known.Draw(t, "estimate"), Replicas: rapid.Int32Range(1, 64).Draw(t, "replicas"),
						Accelerators: rapid.SampledFrom([]string{"", "a100", "a100|v100"}).Draw(t, "accelerators"),
					}
					if unknown([]byte(r.Tenant)) || unknown([]byte(r.Application)) {
						r.Tenant, r.Application = "", ""
					}
					if rapid.Bool().Draw(t, "started") {
						r.Start = r.Submit + rapid.Float64Range(0, 1e5).Draw(t, "wait")
					}
					trace.Add(r, Details{
						Pinned: rapid.Bool().Draw(t, "pinned"), BestEffort: rapid.Bool().Draw(t, "best effort"),
						Deadline: rapid.SampledFrom([]float64{0, 0.1, 900}).Draw(t, "deadline"), Tier: rapid.SampledFrom([]string{"", "premium", "basic"}).Draw(t, "tier"),
						Experiment: rapid.SampledFrom([]string{"", "sweep", "lr_1.e-3"}).Draw(t, "experiment"),
						ShareMilli: rapid.SampledFrom([]int16{0, 1, 250, 999}).Draw(t, "share"), CPUs: rapid.SampledFrom([]float64{0, 0.5, 15}).Draw(t, "CPUs"),
					})
				}
				_, once := again(t, format, trace) // what the format cannot hold is lost here
				first, twice := again(t, format, once)
				second, _ := again(t, format, twice)
				if first != second {
					t.Fatalf("%s (-first,+second):\n%s", format, cmp.Diff(first, second))
				}
				if format == SWF {
					if once.Epoch != trace.Epoch {
						t.Fatalf("it began at %v, and comes back from %v", trace.Epoch, once.Epoch)
					}
					return
				}
				var want, got bytes.Buffer
				if err := writers[format](&want, trace); err != nil {
					t.Fatalf("%v", err)
				}
				if err := writers[format](&got, once); err != nil {
					t.Fatalf("%v", err)
				}
				if want.String() != got.String() {
					t.Fatalf("%s (-want,+got):\n%s", format, cmp.Diff(want.String(), got.String()))
				}
			})
		})
	}
}

// fuzz checks that any log is refused with a reason, or every row of it kept or counted, and that what is kept is a trace.
func fuzz(f *testing.F, from string, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
		f.Add([]byte("\ufeff" + strings.ReplaceAll(seed, "\n", "\r\n") + "\x00\xff"))
	}
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, log []byte) {
		trace, counts, err := Import(context.Background(), "log", bytes.NewReader(log), Options{From: from})
		if err != nil {
			return
		}
		rows := counts.Kept
		for _, c := range counts.Dropped {
			rows += c.Rows
		}
		if rows != counts.Rows || counts.Kept != trace.Len() {
			t.Fatalf("%d rows, %d kept or dropped, %d of %d records", counts.Rows, rows, trace.Len(), counts.Kept)
		}
		for i := range trace.Len() {
			if r := trace.At(i); r.Name == "" || !(r.Submit >= 0) || !(r.Duration > 0) || r.Replicas < 1 || r.Start < r.Submit {
				t.Fatalf("record %+v", r)
			}
		}
		if trace.Len() > 0 {
			for _, format := range []string{CSV, SWF, Batsim} {
				again(t, format, trace)
			}
		}
	})
}

func FuzzSacct(f *testing.F) { fuzz(f, Sacct, messy, seedOf(f, "sacct_het"), seedOf(f, "sacct_twice")) }

func FuzzKueue(f *testing.F) {
	fuzz(f, Kueue, "namespace,name,queue,created,admitted,finished,gpus\nml,a,q,2026-01-05T08:00:00Z,2026-01-05T08:00:01Z,2026-01-05T09:00:00+01:00,8\n",
		"namespace,name,queue,created,admitted,finished,gpus\nml,a,q,1970-01-05T08:00:00Z,1970-01-05T08:00:01Z,9999-01-05T09:00:00Z,8\n",
		"namespace,name,queue,created,admitted,finished,gpus\nml,a,q,1970-01-01T00:00:00+15:00,1970-01-05T08:00:01Z,5000-12-31T23:59:60-15:00,8\n")
}

func FuzzSWF(f *testing.F) {
	fuzz(f, SWF, "; Tenant: 3 lab\n1 0 10 100 4 -1 -1 4 200 -1 1 3 1 7 1 1 -1 -1\n")
}

func FuzzBatsim(f *testing.F) {
	fuzz(f, Batsim, `{"nb_res":1,"jobs":[{"id":"a","subtime":1,"walltime":-1,"res":1,"profile":"p"}],"profiles":{"p":{"type":"delay","delay":2}}}`)
}

func FuzzBatsim5(f *testing.F) {
	fuzz(f, Batsim, `{"nb_res":1,"jobs":[{"id":"a","subtime":1,"walltime":-1,"res":1,"profile":"p","extra_data":"{\"tenant\":\"x\"}"},{"id":2,"subtime":1,"res":1,"profile":"s","extra_data":{"estimate":3}}],`+
		`"profiles":{"p":{"type":"DelayProfile","delay":2},"s":{"type":"SequentialCompositionProfile","repeat":3,"seq":["p","p"]},"t":{"type":"ParallelTaskProfile","runtime":2}}}`,
		`{"jobs":[{"id":"a","subtime":1,"res":1,"profile":"s"}],"profiles":{"s":{"type":"SequentialCompositionProfile","seq":["s"]}}}`)
}

func FuzzKubectl(f *testing.F) {
	fuzz(f, Kubectl, seedOf(f, "kubectl_list"), seedOf(f, "kubectl_object"))
}

func FuzzPhilly(f *testing.F) { fuzz(f, Philly, seedOf(f, "philly")) }

func FuzzPAI(f *testing.F) { fuzz(f, PAI, seedOf(f, "pai"), seedOf(f, "pai_header")) }

func FuzzOpenB(f *testing.F) {
	fuzz(f, OpenB, seedOf(f, "openb_2023"), seedOf(f, "openb_2025"), seedOf(f, "openb_2026"))
}

func FuzzAcme(f *testing.F) { fuzz(f, Acme, seedOf(f, "acme"), seedOf(f, "helios")) }

// seedOf is the log of a golden import.
func seedOf(f *testing.F, name string) string {
	f.Helper()
	archive, err := txtar.ParseFile("testdata/imports/" + name + ".txtar")
	if err != nil {
		f.Fatal(err)
	}
	return string(archive.Files[0].Data)
}

func FuzzCSV(f *testing.F) {
	fuzz(f, CSV, "name,submit_s,duration_s,replicas,share_milli,total_cpus,nodes\na,0,1,0.5,,8,2\nb,0,1,1.5,,8,2\nc,0,1,2,300,1e300,x\n", "name,submit_s,duration_s,replicas,tenant\n\"a,\"\"b\",0,1:00:00,2,x\n\"open,1,2,3,y\nc,1,2,3\n")
}
