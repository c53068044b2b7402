package exchange

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
)

// BenchmarkImport reads and writes 100,000 rows of each format.
func BenchmarkImport(b *testing.B) {
	const rows = 100_000
	logs := map[string]*bytes.Buffer{}
	sacct := bytes.NewBufferString("JobID|JobName|User|Account|Submit|Start|End|Elapsed|Timelimit|State|AllocTRES|ReqTRES|NNodes\n")
	table := bytes.NewBufferString("name,submit_s,duration_s,replicas,tenant\n")
	for i := range rows {
		minute, second := i/60%60, i%60
		fmt.Fprintf(sacct, "%d|job%d|user%d|acct%d|2026-01-%02dT08:%02d:%02d|2026-02-01T08:%02d:%02d|2026-02-02T10:%02d:%02d|1-02:00:00|2-00:00:00|COMPLETED|billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1|gres/gpu=4|1\n",
			i, i, i%500, i%40, 1+i%30, minute, second, minute, second, minute, second)
		fmt.Fprintf(table, "job-%d,%d.5,%d,%d,tenant-%d\n", i, i*7919%rows, 1+i%5000, 1+i%8, i%40)
	}
	logs[Sacct], logs[CSV] = sacct, table
	trace, _, err := Import(context.Background(), "log", bytes.NewReader(table.Bytes()), Options{From: CSV})
	if err != nil {
		b.Fatal(err)
	}
	logs[SWF], logs[Batsim] = &bytes.Buffer{}, &bytes.Buffer{}
	if _, err := WriteSWF(logs[SWF], trace); err != nil {
		b.Fatal(err)
	}
	if _, err := WriteBatsim(logs[Batsim], trace, 64); err != nil {
		b.Fatal(err)
	}
	for _, format := range []string{Sacct, SWF, Batsim, CSV} {
		b.Run(format, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				trace, counts, err := Import(context.Background(), "log", bytes.NewReader(logs[format].Bytes()), Options{From: format})
				if err != nil || counts.Kept != rows {
					b.Fatal(err, counts)
				}
				if err := WriteCSV(io.Discard, trace); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
