package proto

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

var update = flag.Bool("update", false, "add what is new to testdata/contract.txt")

const released = "testdata/contract.txt"

// TestTheContractOnlyGrows holds the descriptors to what was ever released: a field may be added, but none removed,
// renumbered, renamed or given another type, and no call either.
func TestTheContractOnlyGrows(t *testing.T) {
	now := contract()
	text, err := os.ReadFile(released)
	if err != nil && !*update {
		t.Fatal(err)
	}
	before := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range before {
		if line != "" && !slices.Contains(now, line) {
			t.Errorf("the contract no longer has:\n\t%s\na plugin built against it would break; take it back, or begin quartet.stage.v2", line)
		}
	}
	if t.Failed() {
		return
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(released, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, line := range now {
		if !slices.Contains(before, line) {
			t.Errorf("the contract has grown by:\n\t%s\nrun `go test ./plugins/proto -update` to record it", line)
		}
	}
}

func files() []protoreflect.FileDescriptor {
	return []protoreflect.FileDescriptor{
		stagev1.File_quartet_stage_v1_base_proto, stagev1.File_quartet_stage_v1_stages_proto, stagev1.File_quartet_stage_v1_view_proto,
	}
}

// contract lists all that is in the package, one line each, sorted.
func contract() []string {
	var lines []string
	for _, file := range files() {
		for i := range file.Messages().Len() {
			lines = append(lines, fieldsOf(file.Messages().Get(i))...)
		}
		for i := range file.Enums().Len() {
			values := file.Enums().Get(i).Values()
			for k := range values.Len() {
				v := values.Get(k)
				lines = append(lines, fmt.Sprintf("enum %s %d %s", v.Parent().FullName(), v.Number(), v.Name()))
			}
		}
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for k := range methods.Len() {
				lines = append(lines, callOf(methods.Get(k)))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func fieldsOf(m protoreflect.MessageDescriptor) []string {
	lines := []string{fmt.Sprintf("message %s", m.FullName())}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		kind := f.Kind().String()
		switch {
		case f.Message() != nil:
			kind = string(f.Message().FullName())
		case f.Enum() != nil:
			kind = string(f.Enum().FullName())
		}
		lines = append(lines, fmt.Sprintf("message %s %d %s %s %s", m.FullName(), f.Number(), f.Name(), f.Cardinality(), kind))
	}
	return lines
}

func callOf(m protoreflect.MethodDescriptor) string {
	stream := func(is bool) string {
		if is {
			return "stream "
		}
		return ""
	}
	return fmt.Sprintf("rpc %s (%s%s) returns (%s%s)", m.FullName(), stream(m.IsStreamingClient()), m.Input().FullName(),
		stream(m.IsStreamingServer()), m.Output().FullName())
}
