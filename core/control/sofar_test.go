package control

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

func TestFilesSoFarCrossTheWire(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), chunkBytes/4)
	for name, tc := range map[string]struct {
		tell SoFar
		want map[string][]byte
		now  float64
		err  string
	}{
		"files": {
			func() ([]File, float64, error) {
				return []File{{"summary.json", []byte("{}")}, {"jobs.csv", large}, {"none.csv", nil}}, 7.5, nil
			}, map[string][]byte{"summary.json": []byte("{}"), "jobs.csv": large}, 7.5, "",
		},
		"a malfunction":      {func() ([]File, float64, error) { return nil, 0, errors.New("the run has ended") }, nil, 0, "the run has ended"},
		"an earlier version": {nil, nil, 0, ErrEarlierVersion.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			path := folder(t) + "/" + SocketName
			s := NewServer(&fake{}, NewBoard(cluster()), discard)
			s.SetSoFar(tc.tell)
			t.Cleanup(func() { must(t, s.Close()) })
			if err := s.ServeSocket(path); err != nil {
				t.Fatal(err)
			}
			files, now, err := dial(t, path).SoFar(t.Context())
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("error %v, want %s", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, files); diff != "" || now != tc.now || err != nil {
				t.Errorf("at %v, %v (-want +got):\n%.200s", now, err, diff)
			}
		})
	}
}

func TestFilesSoFarAreNotThoseOfAReplay(t *testing.T) {
	r := &replaying{}
	r.behind.Store(true)
	s := NewServer(r, NewBoard(&core.Cluster{}), discard)
	s.SetSoFar(func() ([]File, float64, error) { t.Error("asked during a replay"); return nil, 0, nil })
	path := folder(t) + "/" + SocketName
	t.Cleanup(func() { must(t, s.Close()) })
	if err := s.ServeSocket(path); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 2*catchUpEvery)
	defer cancel()
	if _, _, err := dial(t, path).SoFar(soon); err == nil {
		t.Error("it is answered")
	}
}
