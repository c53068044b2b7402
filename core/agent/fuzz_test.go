package agent

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Whatever is read ends, and a line that is read can be written and is read as the same again.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		`{"hello": {"protocol": 1, "job": "train", "rank": 0}}` + "\n" + `{"report": {"replicas": 2, "nodes": 1, "step_seconds": 0.5}}` + "\n",
		`{"checkpointed": {"progress": 3}, "done": {}}` + "\n{}\nnull\n",
		`{"tuning": {"batch_per_device": 32, "batch_by_replica": [1, 2]}}` + "\n" + `{"stop": {"grace_seconds": 1e308}, "checkpoint": {}}` + "\n",
		`{"hello": {"protocol": 1, "job": "train", "rank": 0, "token": "eyJh.b-_=/+~"}}` + "\n" + `{"hello": {"protocol": 1, "job": "j", "token": "` + strings.Repeat("<", 20_000) + `"}}` + "\n",
		`{"world": {"generation": 3, "rank": 2, "replicas": 4, "nodes": 2, "address": "train-0.train"}}` + "\n" + `{"world": {"replicas": 0}}` + "\n",
		`{"done": {}}` + strings.Repeat(" ", 5000) + "\n{}\n" + strings.Repeat(" ", MaxLine-1) + "\n",
		`{"metrics": [{"name": "loss", "step": 1, "value": NaN}, {"name": "\"nan", "value": -Infinity}, {"name": "x", "value": 1e999}]}` + "\n",
		`{"hello": null}` + "\n[]\n", `{"tuning": {"BATCH_by_replica": []}}` + "\n", "\x00\n", `{"job": "\ud800"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		readAll[FromJob](t, text)
		readAll[ToJob](t, text)
	})
}

func readAll[L any, P line[L]](t *testing.T, text []byte) {
	lines := newReader[L, P](bytes.NewReader(text))
	for {
		l, err := lines.next()
		if err != nil {
			return
		}
		var written bytes.Buffer
		if err := writeLine(&written, l); err != nil {
			if written.Len() > 0 || len(text) < MaxLine/8 {
				t.Fatal(err)
			}
			return // of escapes longer than what they stand for
		}
		again, err := newReader[L, P](&written).next()
		if err != nil {
			t.Fatalf("%+v is not read again: %v", l, err)
		}
		if d := cmp.Diff(l, again, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("not the same again (-want +got):\n%s", d)
		}
	}
}
