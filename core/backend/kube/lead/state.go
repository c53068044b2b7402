package lead

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
)

// Kept is what a scheduler leaves to the one that takes over, beside what the jobs hold.
type Kept struct {
	Epoch    int64     // of the leader that wrote it
	Holder   string    // identity of the one that holds the lease
	Began    time.Time // start of the run, from which its seconds count
	Snapshot []byte    // of the policies; at most SnapshotLimit bytes
}

// SnapshotLimit is how many bytes a snapshot may have: a ConfigMap holds 1 MiB.
const SnapshotLimit = 1_000_000

// The keys of the ConfigMap.
const (
	keySchema   = "schema"
	keyEpoch    = "epoch"
	keyHolder   = "holder"
	keyBegan    = "began"
	keySnapshot = "snapshot"
)

// Schema names the form of the state. A state without one, which earlier versions left, has this form.
const Schema = "quartet.lead/v1"

// countsBefore are numbers that earlier versions want there to take over, and nobody goes by.
var countsBefore = [...]string{"round", "events"}

// State is the ConfigMap in which a leader keeps what has to outlive it. Only the leader of the highest epoch that ever opened
// it can write. Its methods may be called at once.
type State struct {
	client          *kubeclient.Client
	term            *Term
	namespace, name string

	mu   sync.Mutex
	last *corev1.ConfigMap
	kept Kept
}

// Open reads the state and writes the epoch of the term into it. From then on nobody of an older epoch can write, and the epoch
// is this term's own: of two that have the same, because a Lease was deleted before the state was opened, the second gets
// ErrFenced. Nothing else is to be written in the name of a term before. A state that was never written begins at the moment given.
func Open(ctx context.Context, client *kubeclient.Client, term *Term, namespace, name string, now time.Time) (*State, error) {
	s := &State{client: client, term: term, namespace: namespace, name: name}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	err := s.Write(ctx, func(k *Kept) {
		if k.Began.IsZero() {
			k.Began = now.UTC().Round(0)
		}
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Kept is what is stored. The snapshot is not to be changed.
func (s *State) Kept() Kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept
}

// Write changes what is stored. The change is made again when somebody else wrote in between. The error is ErrFenced when a newer
// leader did, and ErrNotRenewed while it is not known who leads. After any other error it is not known whether the change was
// made; the next write finds out.
func (s *State) Write(ctx context.Context, change func(*Kept)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(ctx, change)
}

func (s *State) write(ctx context.Context, change func(*Kept)) error {
	var err error
	for range tries {
		if err := s.mayWrite(); err != nil {
			return err
		}
		kept := s.kept
		change(&kept)
		kept.Epoch, kept.Holder = s.term.Epoch, s.term.Identity
		if len(kept.Snapshot) > SnapshotLimit {
			return fmt.Errorf("write the state %s: the snapshot has %d bytes, at most %d fit", s.name, len(kept.Snapshot), SnapshotLimit)
		}
		var m *corev1.ConfigMap
		if m, err = s.put(ctx, kept); err == nil {
			s.last, s.kept = m, kept
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
		if err := s.load(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("write the state %s: %w", s.name, err)
}

// mayWrite refuses a write that is not this leader's to make.
func (s *State) mayWrite() error {
	k := &s.kept
	if k.Epoch > s.term.Epoch || k.Epoch > 0 && k.Epoch == s.term.Epoch && k.Holder != s.term.Identity {
		return fmt.Errorf("%w: %q wrote the state %s in epoch %d, this is %d", ErrFenced, k.Holder, s.name, k.Epoch, s.term.Epoch)
	}
	return s.term.Err()
}

// put sends a request that is answered before the term is over, if it is answered. Where the ConfigMap was deleted it is made
// again of what this leader knows.
func (s *State) put(ctx context.Context, k Kept) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, s.term.Left())
	defer cancel()
	maps := s.client.ConfigMaps(s.namespace)
	if s.last == nil {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: s.namespace}}
		k.into(m)
		return maps.Create(ctx, m, metav1.CreateOptions{})
	}
	m := s.last.DeepCopy()
	k.into(m)
	return maps.Update(ctx, m, metav1.UpdateOptions{})
}

func (s *State) load(ctx context.Context) error {
	if err := s.term.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.term.Left())
	defer cancel()
	m, err := s.client.ConfigMaps(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.last = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the state %s: %w", s.name, err)
	}
	kept, err := read(m)
	if err != nil {
		return err
	}
	s.last, s.kept = m, kept
	return nil
}

// Look reads what the last leader kept, in nobody's name; the zero value where none ever did.
func Look(ctx context.Context, client *kubeclient.Client, namespace, name string) (Kept, error) {
	m, err := client.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Kept{}, nil
	}
	if err != nil {
		return Kept{}, err
	}
	return read(m)
}

// into writes what is kept into a ConfigMap, and leaves what others put there.
func (k *Kept) into(m *corev1.ConfigMap) {
	if m.Data == nil {
		m.Data = map[string]string{}
	}
	m.Data[keySchema] = Schema
	m.Data[keyEpoch], m.Data[keyHolder], m.Data[keyBegan] = strconv.FormatInt(k.Epoch, 10), k.Holder, k.Began.Format(time.RFC3339Nano)
	for _, key := range countsBefore {
		if m.Data[key] == "" {
			m.Data[key] = "0"
		}
	}
	if len(k.Snapshot) == 0 {
		delete(m.BinaryData, keySnapshot)
		return
	}
	if m.BinaryData == nil {
		m.BinaryData = map[string][]byte{}
	}
	m.BinaryData[keySnapshot] = k.Snapshot
}

// read finds everything that is wrong with a ConfigMap that somebody edited.
func read(m *corev1.ConfigMap) (Kept, error) {
	if len(m.Data) == 0 {
		return Kept{}, nil // somebody made it beforehand
	}
	if schema := m.Data[keySchema]; schema != "" && schema != Schema {
		return Kept{}, fmt.Errorf("state %s is of version %q, and this program reads %q: it is left as it is; run the version that wrote it", m.Name, schema, Schema)
	}
	k := Kept{Holder: m.Data[keyHolder], Snapshot: m.BinaryData[keySnapshot]}
	var problems []error
	epoch, err := strconv.ParseInt(m.Data[keyEpoch], 10, 64)
	if err != nil || epoch < 0 {
		problems = append(problems, fmt.Errorf("state %s: %s: %q is no count", m.Name, keyEpoch, m.Data[keyEpoch]))
	}
	began, err := time.Parse(time.RFC3339Nano, m.Data[keyBegan])
	if err != nil {
		problems = append(problems, fmt.Errorf("state %s: %s: %q is no moment", m.Name, keyBegan, m.Data[keyBegan]))
	}
	k.Epoch, k.Began = epoch, began
	return k, errors.Join(problems...)
}
