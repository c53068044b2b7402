package wire_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// encodedView is a whole view and a change of it, as they travel.
func encodedView(t testing.TB) (full, change []byte) {
	t.Helper()
	jobs := []*coretest.JobBuilder{
		coretest.MakeJob("pending"), coretest.MakeJob("waiting").Waiting(), coretest.MakeJob("running").Running(0, coretest.Seat(0, 1)),
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Jobs(jobs...).Obj()
	var encoder wire.Encoder
	encode := func() []byte {
		message, err := proto.Marshal(encoder.Encode(v, coretest.Candidates(v, coretest.Rigid), nil))
		if err != nil {
			t.Fatal(err)
		}
		return message
	}
	return encode(), encode()
}

// FuzzViewUpdate applies anything to an empty copy and to one that is up to date.
func FuzzViewUpdate(f *testing.F) {
	full, change := encodedView(f)
	f.Add(full)
	f.Add(change)
	f.Fuzz(func(t *testing.T, message []byte) {
		var u stagev1.ViewUpdate
		if proto.Unmarshal(message, &u) != nil {
			t.Skip("the input is no message of this type")
		}
		var empty, current wire.Copy
		var begin stagev1.ViewUpdate
		if err := proto.Unmarshal(full, &begin); err != nil {
			t.Fatal(err)
		}
		if known, err := current.Apply(&begin); !known || err != nil {
			t.Fatalf("known %v, error %v", known, err)
		}
		for _, c := range []*wire.Copy{&empty, &current} {
			known, err := c.Apply(&u)
			if err != nil || !known {
				continue
			}
			v := &c.View
			if len(c.Candidates) != len(v.Active) || !slices.IsSorted(v.Active) || v.Waiting < 0 || v.Waiting > len(v.Active) {
				t.Errorf("%d candidates, active %v, %d waiting", len(c.Candidates), v.Active, v.Waiting)
			}
			for _, id := range v.Active {
				if v.Job(id) == nil {
					t.Errorf("active job %d is unknown", id)
				}
			}
		}
	})
}

// FuzzEdit applies any edit to a list, and tells any list by edits.
func FuzzEdit(f *testing.F) {
	f.Add([]byte{0, 2, 0}, []byte{}, []byte{3, 1})
	f.Add([]byte{1, 1, 2}, []byte{7, 8}, []byte{1, 2, 3, 3})
	f.Add([]byte{255, 255, 255}, []byte{9}, []byte{255})
	f.Fuzz(func(t *testing.T, steps, inserted, list []byte) {
		var r wire.Receiver[core.JobID]
		if _, err := r.Apply([]uint32{0, 0, 2}, []core.JobID{1, 2}); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Apply(widen[uint32](steps), widen[core.JobID](inserted)); err == nil && len(got) > 2+len(inserted) {
			t.Errorf("%d items of 2 and %d", len(got), len(inserted))
		}
		sender, receiver := wire.NewJobSender(), wire.Receiver[core.JobID]{}
		for _, want := range [][]core.JobID{{5, 1, 2}, widen[core.JobID](list), {2, 3}} {
			steps, inserted := sender.Encode(want)
			if got, err := receiver.Apply(steps, inserted); err != nil || !slices.Equal(got, want) {
				t.Fatalf("got %v, heard %v, error %v", want, got, err)
			}
		}
	})
}

// widen makes numbers of bytes, the highest ones near both ends of their range.
func widen[T ~int32 | ~uint32](bytes []byte) []T {
	numbers := make([]T, len(bytes))
	for i, b := range bytes {
		numbers[i] = T(b)
		if b >= 250 {
			numbers[i] = T(uint32(1)<<31 - 253 + uint32(b))
		}
	}
	return numbers
}
