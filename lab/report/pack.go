package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
)

// A pack carries what the charts show: columns of four bytes a value, small texts beside them, gzipped, in base64.
// Its layout is the length of the JSON index in four bytes, the index, and the columns, each at a multiple of four.
type pack struct {
	index  map[string]column
	values map[string]any
	blob   []byte
}

// A column says where its values lie in the blob and what they mean.
type column struct {
	At    int     `json:"at"`
	N     int     `json:"n"`
	Scale float64 `json:"scale"`           // of unsigned whole numbers; 0 for floating point
	Delta bool    `json:"delta,omitempty"` // each is added to the one before
}

func newPack() *pack { return &pack{index: map[string]column{}, values: map[string]any{}} }

// missing stands for a value that is not known in a column of whole numbers.
const missing = math.MaxUint32

// scales are the units of whole numbers, the finest first. A millisecond does for times up to 49 days.
var scales = [...]float64{0.001, 0.01, 0.1, 1, 10, 100, 1000}

// times adds a column of seconds, exact to the finest scale that holds the largest. Negative ones count as 0.
func (p *pack) times(name string, values []float64) {
	most, sorted, last := 0.0, true, 0.0
	for _, v := range values {
		if math.IsNaN(v) {
			sorted = false
			continue
		}
		most, sorted, last = max(most, v), sorted && v >= last, v
	}
	scale := scales[len(scales)-1]
	for _, s := range scales {
		if most/s < missing-1 {
			scale = s
			break
		}
	}
	whole := make([]uint32, len(values))
	before := uint32(0)
	for i, v := range values {
		u := uint32(missing)
		if !math.IsNaN(v) {
			u = uint32(math.Round(min(max(v, 0)/scale, missing-1)))
		}
		if whole[i] = u; sorted {
			whole[i] = u - before
			before = u
		}
	}
	p.add(name, whole, scale, sorted)
}

// counts adds a column of whole numbers.
func (p *pack) counts(name string, values []uint32) { p.add(name, values, 1, false) }

// wholes adds a column of whole numbers of a table.
func (p *pack) wholes(name string, values []float64) {
	list := make([]uint32, len(values))
	for i, v := range values {
		if list[i] = missing; !math.IsNaN(v) {
			list[i] = uint32(min(max(v, 0), missing-1))
		}
	}
	p.counts(name, list)
}

// ratios adds a column of numbers, to seven digits.
func (p *pack) ratios(name string, values []float64) {
	bits := make([]uint32, len(values))
	for i, v := range values {
		bits[i] = math.Float32bits(float32(v))
		if math.IsNaN(v) {
			bits[i] = 0x7fc00000 // one form of many
		}
	}
	p.add(name, bits, 0, false)
}

func (p *pack) add(name string, values []uint32, scale float64, delta bool) {
	p.index[name] = column{At: len(p.blob), N: len(values), Scale: scale, Delta: delta}
	for _, v := range values {
		p.blob = binary.LittleEndian.AppendUint32(p.blob, v)
	}
}

// value adds anything small that JSON can say.
func (p *pack) value(name string, v any) { p.values[name] = v }

// encode is the pack as text for a page.
func (p *pack) encode() (string, error) {
	index, err := json.Marshal(map[string]any{"columns": p.index, "values": p.values})
	if err != nil {
		return "", fmt.Errorf("write the index: %w", err)
	}
	for len(index)%4 != 0 {
		index = append(index, ' ')
	}
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(index)))
	for _, part := range [...][]byte{head, index, p.blob} {
		if _, err := zip.Write(part); err != nil {
			return "", err
		}
	}
	if err := zip.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(out.Bytes()), nil
}
