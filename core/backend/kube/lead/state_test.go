package lead

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func stateOf(k Kept) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: stateName, Namespace: namespace}}
	k.into(m)
	return m
}

// termOf is a term of an epoch that stays valid.
func termOf(epoch int64) *Term {
	return &Term{Epoch: epoch, clock: realClock{}, renew: time.Hour, renewed: now()}
}

// number is a snapshot that tells one write from another.
func number(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

func numberOf(snapshot []byte) int64 {
	n, _ := strconv.ParseInt(string(snapshot), 10, 64)
	return n
}

func open(t *testing.T, p *process, epoch int64, began time.Time) *State {
	t.Helper()
	s, err := Open(t.Context(), p.client(), termOf(epoch), namespace, stateName, began)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestState(t *testing.T) {
	server := &server{}
	p := newProcess(server, "a")
	defer p.end()
	began := time.Date(2026, 11, 22, 15, 0, 0, 123456789, time.UTC)
	s := open(t, p, 1, began)
	snapshot := []byte{0, 255, 1}
	err := s.Write(t.Context(), func(k *Kept) { k.Snapshot = snapshot })
	want := Kept{Epoch: 1, Began: began, Snapshot: snapshot}
	if diff := cmp.Diff(want, s.Kept()); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	// The next leader reads it, and begins no run anew.
	next := open(t, p, 2, began.Add(time.Hour))
	want.Epoch = 2
	if diff := cmp.Diff(want, next.Kept()); diff != "" {
		t.Errorf("taken over (-want +got):\n%s", diff)
	}
	version := server.version
	if err := s.Write(t.Context(), func(k *Kept) { k.Snapshot = number(13) }); !errors.Is(err, ErrFenced) || server.version != version {
		t.Errorf("a write of an older epoch: %v, %d writes", err, server.version-version)
	}
	if err := next.Write(t.Context(), func(k *Kept) { k.Snapshot = nil }); err != nil || next.Kept().Snapshot != nil {
		t.Errorf("the snapshot is taken away: %v", err)
	}
	err = next.Write(t.Context(), func(k *Kept) { k.Snapshot = make([]byte, SnapshotLimit+1) })
	if err == nil || !strings.Contains(err.Error(), "at most 1000000 fit") {
		t.Errorf("a snapshot that is too large: %v", err)
	}
}

// What others write into the ConfigMap stays, and does not keep the leader from writing; one that is deleted is made again.
func TestStateOfOthers(t *testing.T) {
	server := &server{}
	p := newProcess(server, "a")
	defer p.end()
	maps := p.client().ConfigMaps(namespace)
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: stateName}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := open(t, p, 1, time.Unix(0, 0))
	for round := range int64(3) {
		m, err := maps.Get(t.Context(), stateName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m.Data["note"] = "of somebody else"
		if _, err := maps.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := s.Write(t.Context(), func(k *Kept) { k.Snapshot = number(round) }); err != nil {
			t.Fatal(err)
		}
		if m, err = maps.Get(t.Context(), stateName, metav1.GetOptions{}); err != nil || m.Data["note"] == "" {
			t.Errorf("%v, %v", m.Data, err)
		}
	}
	server.remove("configmaps", stateName)
	if err := s.Write(t.Context(), func(k *Kept) { k.Began = time.Unix(5, 0).UTC() }); err != nil {
		t.Fatal(err)
	}
	m, err := maps.Get(t.Context(), stateName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if k, err := read(m); err != nil || numberOf(k.Snapshot) != 2 || !k.Began.Equal(time.Unix(5, 0)) || k.Epoch != 1 {
		t.Errorf("made again: %+v, %v", k, err)
	}
}

func TestStateThatIsNone(t *testing.T) {
	server := &server{}
	p := newProcess(server, "a")
	defer p.end()
	m := stateOf(Kept{Epoch: 1})
	m.Data["epoch"], m.Data["began"] = "-1", "now"
	server.put("configmaps/"+stateName, m)
	_, err := Open(t.Context(), p.client(), termOf(2), namespace, stateName, time.Unix(0, 0))
	want := "state quartet-state: epoch: \"-1\" is no count\nstate quartet-state: began: \"now\" is no moment"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// What a scheduler of the version before wrote is read: it numbered events, and kept the round and a hash of its config.
func TestStateOfTheVersionBefore(t *testing.T) {
	server := &server{}
	p := newProcess(server, "a")
	defer p.end()
	before := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: stateName, Namespace: namespace},
		Data: map[string]string{
			"epoch": "4", "holder": "somebody", "began": "2026-11-22T15:00:00.000000001Z", "round": "17", "events": "3000", "config": "abc",
		},
		BinaryData: map[string][]byte{"snapshot": {0, 1}},
	}
	server.put("configmaps/"+stateName, before)
	s := open(t, p, 5, time.Unix(0, 0))
	want := Kept{Epoch: 5, Began: time.Date(2026, 11, 22, 15, 0, 0, 1, time.UTC), Snapshot: []byte{0, 1}}
	if diff := cmp.Diff(want, s.Kept()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m, err := p.client().ConfigMaps(namespace).Get(t.Context(), stateName, metav1.GetOptions{})
	if err != nil || m.Data["round"] != "17" || m.Data["events"] != "3000" { // or one of before could not read it any more
		t.Errorf("%v, %v", m.Data, err)
	}
}

// What this version writes anew a scheduler of the version before can read: it wants its numbers there.
func TestStateForTheVersionBefore(t *testing.T) {
	p := newProcess(&server{}, "a")
	defer p.end()
	open(t, p, 1, time.Unix(0, 0))
	m, err := p.client().ConfigMaps(namespace).Get(t.Context(), stateName, metav1.GetOptions{})
	if err != nil || m.Data["round"] != "0" || m.Data["events"] != "0" {
		t.Errorf("%v, %v", m.Data, err)
	}
}

// What a later version wrote is refused by its name, and left as it is.
func TestStateOfALaterVersion(t *testing.T) {
	server := &server{}
	p := newProcess(server, "a")
	defer p.end()
	m := stateOf(Kept{Epoch: 1})
	m.Data["schema"], m.Data["began"] = "quartet.lead/v2", "of another form"
	server.put("configmaps/"+stateName, m)
	version := server.version
	_, err := Open(t.Context(), p.client(), termOf(2), namespace, stateName, time.Unix(0, 0))
	if err == nil || !strings.Contains(err.Error(), `is of version "quartet.lead/v2", and this program reads "quartet.lead/v1"`) || server.version != version {
		t.Errorf("%v after %d writes, want both versions and no write", err, server.version-version)
	}
}

// A write is not begun while the term is not valid.
func TestStateOfATermNotRenewed(t *testing.T) {
	server := &server{}
	p := newProcess(server, "a")
	defer p.end()
	s := open(t, p, 1, time.Unix(0, 0))
	version := server.version
	s.term.renew = 0
	if err := s.Write(t.Context(), func(*Kept) {}); !errors.Is(err, ErrNotRenewed) || server.version != version {
		t.Errorf("%v, %d writes", err, server.version-version)
	}
}

// Two terms have the same epoch when the Lease is deleted before the first opens the state. One of them goes on.
func TestStateOfTheSameEpoch(t *testing.T) {
	p := newProcess(&server{}, "a")
	defer p.end()
	first, second := termOf(3), termOf(3)
	first.Identity, second.Identity = "first", "second"
	s, err := Open(t.Context(), p.client(), second, namespace, stateName, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), p.client(), first, namespace, stateName, time.Unix(0, 0)); !errors.Is(err, ErrFenced) {
		t.Errorf("the second to open: %v", err)
	}
	if _, err := Open(t.Context(), p.client(), second, namespace, stateName, time.Unix(0, 0)); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if err := s.Write(t.Context(), func(k *Kept) { k.Snapshot = number(1) }); err != nil || s.Kept().Holder != "second" {
		t.Errorf("the first to open: %v, %+v", err, s.Kept())
	}
}
