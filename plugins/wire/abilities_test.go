package wire

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

var update = flag.Bool("update", false, "write the rows of abilities into docs/plugin-protocol.md")

// TestAbilityTableIsInOrder holds each row to its ability, and to a field of ConfigureResponse of its own.
func TestAbilityTableIsInOrder(t *testing.T) {
	table := abilityTable()
	if len(table) != int(abilities) {
		t.Fatalf("%d rows, want one for each of %d abilities", len(table), abilities)
	}
	fields := map[string]bool{}
	for i, row := range table {
		if int(row.ability) != i {
			t.Errorf("row %d is about ability %d", i, row.ability)
		}
		field := row.fieldOf(&stagev1.ConfigureResponse{})
		if field == nil || fields[row.field] {
			t.Fatalf("row %d: ConfigureResponse has no field %q, or another row has it", i, row.field)
		}
		fields[row.field] = true
		if field.IsList() != (row.ability == GuaranteesTiers) || !field.IsList() && field.Kind() != protoreflect.BoolKind {
			t.Errorf("field %q is a %v, which cannot report an ability", row.field, field.Kind())
		}
	}
	// Every other field is about the settings or the connection.
	all := (&stagev1.ConfigureResponse{}).ProtoReflect().Descriptor().Fields()
	for i := range all.Len() {
		if name := string(all.Get(i).Name()); !fields[name] && !slices.Contains([]string{"diagnostics", "capabilities", "config_json", "exchange", "channel"}, name) {
			t.Errorf("ConfigureResponse has the field %q, which abilityTable does not list", name)
		}
	}
}

// unreported are the optional interfaces of package core that no field of ConfigureResponse reports.
var unreported = []reflect.Type{
	reflect.TypeFor[core.Steady](),        // each answer holds its standing
	reflect.TypeFor[core.Certifier](),     // each answer of an allocation holds its gap_ratio
	reflect.TypeFor[core.SomeAllocator](), // the host implements it: a question says whom it leaves out
	reflect.TypeFor[core.Recoverer](),     // the host implements it for every component in another process
	reflect.TypeFor[core.Discarder](),     // likewise
	reflect.TypeFor[core.FileReader](),    // for built-ins only: a plugin is identified by its hash
	reflect.TypeFor[core.Snapshotter](),   // for built-ins only: a plugin starts again from the view
	reflect.TypeFor[core.Forker](),        // for built-ins only: a plugin starts again from the view
}

// TestEveryOptionalInterfaceIsListed fails when package core has an interface whose comment says that some stages implement it, and
// neither abilityTable nor unreported lists it.
func TestEveryOptionalInterfaceIsListed(t *testing.T) {
	var listed []string
	for _, i := range unreported {
		listed = append(listed, i.Name())
	}
	for _, row := range abilityTable() {
		listed = append(listed, row.by)
	}
	files, err := filepath.Glob("../../core/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range optionalInterfaces(file) {
			if found++; !slices.Contains(listed, name) {
				t.Errorf("%s: the optional interface %s is in no list", path, name)
			}
		}
	}
	if found == 0 {
		t.Error("package core has no optional interface; is the pattern of their comments still right?")
	}
}

var optional = regexp.MustCompile(`^\w+ is implemented by an? (stage|component|admitter|allocator|placer|elasticity|scaler)\b`)

// optionalInterfaces returns the interfaces of a file that some stages implement, by their comments.
func optionalInterfaces(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		declaration, ok := d.(*ast.GenDecl)
		if !ok || declaration.Tok != token.TYPE {
			continue
		}
		for _, s := range declaration.Specs {
			spec := s.(*ast.TypeSpec)
			if _, is := spec.Type.(*ast.InterfaceType); is && optional.MatchString(declaration.Doc.Text()) {
				names = append(names, spec.Name.Name)
			}
		}
	}
	return names
}

const protocolDocument = "../../docs/plugin-protocol.md"

// TestTheDocumentHasTheTable holds docs/plugin-protocol.md to abilityTable: the fields of ConfigureResponse, and the list of abilities.
func TestTheDocumentHasTheTable(t *testing.T) {
	data, err := os.ReadFile(protocolDocument)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	edit := func(heading string, change func(section string) string) {
		before, rest, found := strings.Cut(text, "\n### "+heading+"\n")
		section, after, ends := strings.Cut(rest, "\n### ")
		if !found || !ends {
			t.Fatalf("%s has no section %q", protocolDocument, heading)
		}
		text = before + "\n### " + heading + "\n" + change(section) + "\n### " + after
	}
	edit("ConfigureResponse", func(section string) string {
		for _, row := range abilityTable() {
			line := regexp.MustCompile("(?m)^\\| `" + row.field + "` \\| .* \\|$")
			if !line.MatchString(section) {
				t.Errorf("%s has no row for %q", protocolDocument, row.field)
			}
			section = line.ReplaceAllLiteralString(section, fmt.Sprintf("| `%s` | %s |", row.field, row.meaning))
		}
		return section
	})
	edit("Abilities in Go", func(string) string { return abilitySection() })
	if *update {
		if err := os.WriteFile(protocolDocument, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(text, string(data)); diff != "" {
		t.Errorf("%s is out of date (-want +got):\n%s\nrun `go test ./plugins/wire -update`", protocolDocument, diff)
	}
}

// abilitySection is the text below its heading.
func abilitySection() string {
	var b strings.Builder
	b.WriteString(`
A policy in Go has an ability when it implements an interface of package core; the SDK then sets the field. Other languages set it
themselves.

| field | stage | interface |
|---|---|---|
`)
	for _, row := range abilityTable() {
		stage, by := StageName(row.stage), "`core."+row.by+"`"
		if stage == "" {
			stage, by = "any", "every policy: the SDK knows the contract"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row.field, stage, by)
	}
	return b.String()
}

// able has every ability, or reports that it does not.
type able struct{ yes bool }

func (able) Ended(context.Context, *core.View, []*core.Job) error                   { return nil }
func (able) Admit(context.Context, *core.View, []*core.Job) ([]core.Verdict, error) { return nil, nil }

func (able) AdmitCandidates(context.Context, *core.View, []core.Candidate, []core.Candidate) ([]core.Verdict, error) {
	return nil, nil
}

func (able) Review(context.Context, *core.View, []*core.Job) ([]core.Verdict, error) { return nil, nil }

func (able) Respond(context.Context, *core.View, []*core.Job) ([]core.Response, error) {
	return nil, nil
}

func (able) Tune(context.Context, *core.View, []core.Placement) ([]core.Tuning, error) {
	return nil, nil
}

func (able) Allocate(context.Context, *core.View, []core.Candidate) ([]core.Grant, error) {
	return nil, nil
}

func (a able) KeepsReserved() bool       { return a.yes }
func (a able) AskedOnce() bool           { return a.yes }
func (a able) Precedes() bool            { return a.yes }
func (a able) Promises() bool            { return a.yes }
func (a able) FollowsReports() bool      { return a.yes }
func (able) Guarantees() core.Guarantees { return core.Guarantees{1, 0.5, 0.25} }

// TestAbilitiesTravel holds what is found in a policy to the answer to Configure, and to what the host reads from it.
func TestAbilitiesTravel(t *testing.T) {
	cases := map[string]struct {
		policy any
		want   *stagev1.ConfigureResponse
	}{
		"none": {struct{}{}, &stagev1.ConfigureResponse{Changing: true, Reports: true, Withheld: true}},
		"all": {able{yes: true}, &stagev1.ConfigureResponse{
			Ends: true, Curves: true, Promises: true, Reviews: true, FollowsReports: true, Guarantees: []float64{1, 0.5, 0.25}, Changing: true, Reports: true, Withheld: true,
			Precedes: true, AskedOnce: true, KeepsReserved: true,
		}},
		"all that say no": {able{}, &stagev1.ConfigureResponse{
			Ends: true, Curves: true, Reviews: true, Guarantees: []float64{1, 0.5, 0.25}, Changing: true, Reports: true, Withheld: true,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found, answer := AbilitiesOf(tc.policy), &stagev1.ConfigureResponse{}
			if found.Report(answer); !proto.Equal(tc.want, answer) {
				t.Errorf("reported %v, want %v", answer, tc.want)
			}
			if diff := cmp.Diff(found, AbilitiesFrom(answer), cmp.AllowUnexported(Abilities{})); diff != "" {
				t.Errorf("(-found +read)\n%s", diff)
			}
		})
	}
}

// TestAPluginThatReportsNothingHasNoAbility reads the answer of a plugin built before there were abilities.
func TestAPluginThatReportsNothingHasNoAbility(t *testing.T) {
	for name, answer := range map[string]*stagev1.ConfigureResponse{
		"nothing": {}, "guarantees of another form": {Guarantees: []float64{1}},
	} {
		if diff := cmp.Diff(Abilities{}, AbilitiesFrom(answer), cmp.AllowUnexported(Abilities{})); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	if a := Able(UsesCurves, KnowsReports); !a.Has(UsesCurves) || !a.Has(KnowsReports) || a.Has(ReviewsJobs) {
		t.Errorf("Able holds %+v", a)
	}
}
