package python_test

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/descriptorpb"

	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// TestStubsAreThoseOfTheContract holds what generate.sh wrote to the contract that Go was generated from.
func TestStubsAreThoseOfTheContract(t *testing.T) {
	for _, file := range []protoreflect.FileDescriptor{
		stagev1.File_quartet_stage_v1_base_proto, stagev1.File_quartet_stage_v1_stages_proto, stagev1.File_quartet_stage_v1_view_proto,
	} {
		name := strings.TrimSuffix(path.Base(file.Path()), ".proto")
		t.Run(name, func(t *testing.T) {
			want := protodesc.ToFileDescriptorProto(file)
			for _, m := range want.GetMessageType() {
				for _, f := range m.GetField() {
					f.JsonName = nil // which Python makes up
				}
			}
			got := descriptorIn(t, "quartet_plugin/_proto/"+name+"_pb2.py")
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("the stubs are old; run `make generate` with protoc 3.21 (-contract +stubs):\n%s", diff)
			}
			types := readFile(t, "quartet_plugin/_proto/"+name+"_pb2.pyi")
			for _, m := range want.GetMessageType() {
				_, class, _ := strings.Cut(types, "\nclass "+m.GetName()+"(")
				class, _, _ = strings.Cut(class, "\nclass ")
				for _, f := range m.GetField() {
					if !strings.Contains(class, fmt.Sprintf("\n    %s: ", f.GetName())) {
						t.Errorf("the types lack %s.%s; run `make generate` with protoc 3.21", m.GetName(), f.GetName())
					}
				}
			}
		})
	}
}

// serialized finds the descriptor in a generated module: a literal whose escapes are also Go's.
var serialized = regexp.MustCompile(`AddSerializedFile\(b'(.*)'\)`)

func descriptorIn(t *testing.T, path string) *descriptorpb.FileDescriptorProto {
	t.Helper()
	match := serialized.FindStringSubmatch(readFile(t, path))
	if match == nil {
		t.Fatalf("%s holds no descriptor", path)
	}
	data, err := strconv.Unquote(`"` + strings.ReplaceAll(match[1], `\'`, `'`) + `"`)
	if err != nil {
		t.Fatalf("descriptor of %s: %v", path, err)
	}
	d := new(descriptorpb.FileDescriptorProto)
	if err := proto.Unmarshal([]byte(data), d); err != nil {
		t.Fatalf("descriptor of %s: %v", path, err)
	}
	return d
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
