package optim_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core/optim"
)

// odd reads numbers out of bytes: some as they are, whatever that makes of them, most of a size that is let in.
type odd struct {
	data        []byte
	least, most float64 // sizes that were read, but for 0
}

// spread is how many times the least number the largest is.
func (o *odd) spread() float64 { return o.most / o.least }

func (o *odd) int(most int) int {
	if len(o.data) == 0 {
		return 0
	}
	v := int(o.data[0]) % (most + 1)
	o.data = o.data[1:]
	return v
}

func (o *odd) float() float64 {
	v := o.number()
	if size := math.Abs(v); size > 0 {
		if o.least == 0 {
			o.least, o.most = size, size
		}
		o.least, o.most = min(o.least, size), max(o.most, size)
	}
	return v
}

func (o *odd) number() float64 {
	switch kind := o.int(7); {
	case kind == 0 && len(o.data) >= 8:
		v := math.Float64frombits(binary.LittleEndian.Uint64(o.data))
		o.data = o.data[8:]
		return v
	case kind == 1:
		return math.Pow(10, float64(o.int(18)-9))
	case kind == 2:
		return 0
	default:
		return float64(o.int(255)) / 16
	}
}

func (o *odd) list(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = o.float()
	}
	return list
}

func FuzzShares(f *testing.F) {
	f.Add([]byte{3, 2, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26})
	f.Add([]byte{5, 3, 1, 0, 1, 100, 1, 50, 1, 1, 1, 99, 1, 3, 1, 97, 2, 2, 2, 1, 0, 1, 100, 0, 1, 2, 3, 4, 5, 6, 7, 240, 127})
	f.Fuzz(func(t *testing.T, data []byte) {
		o := odd{data: data}
		n, types := o.int(8), o.int(4)
		p := optim.Polytope{Capacity: o.list(types), Jobs: make([]optim.ShareJob, n)}
		for i := range p.Jobs {
			p.Jobs[i] = optim.ShareJob{Devices: o.float(), Rates: o.list(types), Count: o.int(3)}
		}
		var s optim.SharesSolver
		fine := func(shares [][]float64, err error) {
			t.Helper()
			if errors.Is(err, optim.ErrPivots) && o.spread() < 1e6 {
				t.Errorf("%v on %+v", err, p)
			}
			if err == nil && shares != nil && !(p.Excess(shares) <= 1e-9) {
				t.Errorf("shares %v lie %v outside of %+v", shares, p.Excess(shares), p)
			}
		}
		r, err := s.MaxMin(context.Background(), p, optim.Level{Floor: o.list(n), Slope: o.list(n)})
		fine(r.Shares, err)
		values := make([][]float64, n)
		for i := range values {
			values[i] = o.list(types)
		}
		m, err := s.MaxSum(context.Background(), p, values, o.list(n))
		fine(m.Shares, err)
		w, err := s.WaterFill(context.Background(), p, nil, nil)
		fine(w.Shares, err)
		d, err := s.FinishTimes(context.Background(), p, optim.Finish{Elapsed: o.list(n), Remaining: o.list(n), Exclusive: o.list(n)})
		fine(d.Shares, err)
	})
}

func FuzzSolveLinear(f *testing.F) {
	f.Add([]byte("2100000000000000000\xc80000000\x00\x00")) // a coefficient that is next to nothing
	f.Add([]byte{2, 3, 8, 9, 10, 11, 0, 13, 14, 15, 1, 17, 18, 19, 2, 21, 22, 23})
	f.Fuzz(func(t *testing.T, data []byte) {
		o := odd{data: data}
		n, rows := o.int(5), o.int(5)
		p := optim.LinearProgram{Objective: o.list(n)}
		for range rows {
			p.Rows = append(p.Rows, optim.Row{Coefficients: o.list(n), Relation: optim.Relation(o.int(3)), Bound: o.float()})
		}
		if o.int(1) == 1 {
			p.Upper = o.list(n)
		}
		s, err := optim.SolveLinear(context.Background(), p)
		for _, v := range append(s.X, s.Duals...) {
			if err == nil && math.IsNaN(v) {
				t.Errorf("x %v, duals %v of %+v", s.X, s.Duals, p)
			}
		}
	})
}
