package sdk

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// limits are the settings of the policies that these tests serve.
type limits struct {
	Most  int    `config:"most" doc:"Most replicas of a job." min:"1"`
	Word  string `config:"word" doc:"A word."`
	Break bool   `config:"break" doc:"Whether the policy cannot be made."`
}

// Capabilities returns what a policy with these settings needs besides what every one needs.
func (l limits) Capabilities() []core.Capability {
	if l.Most > 8 {
		return []core.Capability{core.CapabilityStepTimes}
	}
	return nil
}

// limited is the factory of a policy with settings.
func limited[S any](info core.Info, build func(limits, core.Settings) S) core.Factory[S] {
	return core.NewFactory(info, limits{Most: 4}, func(l limits, s core.Settings) (S, error) {
		if l.Break {
			var none S
			return none, errors.New("the model cannot be read")
		}
		return build(l, s), nil
	})
}

func serve(t testing.TB, factories ...Factory) *server {
	t.Helper()
	s, err := newServer(factories, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// allocators serves one allocation policy, and keeps the settings with which it was made last.
func allocators(t testing.TB, policy core.Allocator) (s *server, made *core.Settings, config *limits) {
	t.Helper()
	made, config = &core.Settings{}, &limits{}
	return serve(t, limited(core.Info{Type: "mine", Capabilities: []core.Capability{core.CapabilityRemainingWork}}, func(l limits, s core.Settings) core.Allocator {
		*made, *config = s, l
		return policy
	})), made, config
}

func mine(settings string) *stagev1.ConfigureRequest {
	return &stagev1.ConfigureRequest{Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "mine", ComponentId: "allocation/mine", Seed: 7, ConfigJson: settings}
}

func TestAServerNeedsFactoriesOfStages(t *testing.T) {
	for name, tc := range map[string]struct {
		factories []Factory
		want      string
	}{
		"none":        {nil, "at least one factory"},
		"of no stage": {[]Factory{limited(core.Info{Type: "odd"}, func(limits, core.Settings) int { return 0 })}, "core.Factory[int] is a factory of no stage"},
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := newServer(tc.factories, slog.New(slog.DiscardHandler)); err == nil || s != nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, error %v, want %q in it", s, err, tc.want)
			}
			if err := Register(nil, slog.New(slog.DiscardHandler), tc.factories...); err == nil {
				t.Error("Register takes them")
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	s := serve(t,
		limited(core.Info{
			Type: "mine", Summary: "one line", Description: "sentences", Source: "a paper", OneType: true,
			Capabilities: []core.Capability{core.CapabilityRemainingWork}, Sharing: []core.Sharing{core.Fractional},
		}, func(limits, core.Settings) core.Allocator { return echo{} }),
		limited(core.Info{Type: "seats", Counts: true, Divides: true}, func(limits, core.Settings) core.Placer { return echo{} }),
	)
	answer, err := s.Describe(t.Context(), nil)
	if err != nil || len(answer.GetComponents()) != 2 {
		t.Fatalf("%v, error %v", answer, err)
	}
	if answer.GetName() == "" || answer.GetVersion() == "" || answer.GetMinProtocol() != wire.MinProtocol || answer.GetMaxProtocol() != wire.Protocol {
		t.Errorf("the plugin says %v", answer)
	}
	first, second := answer.GetComponents()[0], answer.GetComponents()[1]
	for _, json := range []string{first.GetConfigSchemaJson(), first.GetFieldsJson()} {
		if !strings.Contains(json, "Most replicas of a job.") {
			t.Errorf("no documentation of a setting in %s", json)
		}
	}
	first.ConfigSchemaJson, first.FieldsJson, second.ConfigSchemaJson, second.FieldsJson = "", "", "", ""
	want := []string{
		`stage:STAGE_ALLOCATION type:"mine" summary:"one line" description:"sentences" source:"a paper" capabilities:"remaining_work" one_type:true sharing:SHARING_FRACTIONAL`,
		`stage:STAGE_PLACEMENT type:"seats" counts:true divides:true`,
	}
	if diff := cmp.Diff(want, []string{spaced(first.String()), spaced(second.String())}); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// spaced writes a message with single spaces: the library varies them on purpose.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestConfigureCreatesTheComponent(t *testing.T) {
	s, made, config := allocators(t, echo{})
	answer, err := s.Configure(t.Context(), mine(`{"most": 9, "word": "so"}`))
	if err != nil || len(answer.GetDiagnostics()) > 0 {
		t.Fatalf("%v, error %v", answer, err)
	}
	want := `{"break":false,"most":9,"word":"so"}`
	if *config != (limits{Most: 9, Word: "so"}) || answer.GetConfigJson() != want {
		t.Errorf("made with %+v, reported as %s, want %s", *config, answer.GetConfigJson(), want)
	}
	if needs := answer.GetCapabilities(); !slices.Equal(needs, []string{"remaining_work", "step_times"}) {
		t.Errorf("it needs %v", needs)
	}
	if made.ID != "allocation/mine" || made.Log == nil || made.Rand.Uint64() != core.NewRand(7, "allocation/mine").Uint64() {
		t.Errorf("made with settings %+v", made)
	}
	if !answer.GetExchange() || answer.GetChannel() || !answer.GetChanging() || !answer.GetReports() || answer.GetEnds() {
		t.Errorf("it reports %v", answer)
	}
}

// TestConfigureTakesTheChannel offers and takes a channel in all four ways.
func TestConfigureTakesTheChannel(t *testing.T) {
	for _, inherited := range []bool{false, true} {
		for _, offered := range []bool{false, true} {
			s, _, _ := allocators(t, echo{})
			s.channel = inherited
			q := mine("")
			q.Channel = offered
			if answer, err := s.Configure(t.Context(), q); err != nil || answer.GetChannel() != (inherited && offered) {
				t.Errorf("inherited %v, offered %v: channel %v, error %v", inherited, offered, answer.GetChannel(), err)
			}
		}
	}
}

func TestConfigureRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		request  *stagev1.ConfigureRequest
		code     codes.Code
		message  string
		problems []string
	}{
		"another type": {
			request: &stagev1.ConfigureRequest{Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "other"}, code: codes.NotFound,
			message: `no component "allocation/other"; the plugin serves [allocation/mine]`,
		},
		"another stage": {
			request: &stagev1.ConfigureRequest{Stage: stagev1.Stage_STAGE_PLACEMENT, Type: "mine"}, code: codes.NotFound,
			message: `no component "placement/mine"; the plugin serves [allocation/mine]`,
		},
		"no JSON":          {request: mine(`{"most"`), code: codes.InvalidArgument, message: "settings: unexpected EOF"},
		"unknown settings": {request: mine(`{"mots": 1, "least": 2}`), problems: []string{"least", "mots"}},
		"a bad value":      {request: mine(`{"most": 0}`), problems: []string{"most"}},
		"no policy":        {request: mine(`{"break": true}`), problems: []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			s, made, _ := allocators(t, echo{})
			answer, err := s.Configure(t.Context(), tc.request)
			if got := status.Convert(err); got.Code() != tc.code || got.Message() != tc.message {
				t.Errorf("code %v, message %q", got.Code(), got.Message())
			}
			var paths []string
			for _, d := range answer.GetDiagnostics() {
				paths = append(paths, d.GetPath())
				if d.GetSummary() == "" {
					t.Errorf("a problem without a text: %v", d)
				}
			}
			slices.Sort(paths)
			if !slices.Equal(paths, tc.problems) {
				t.Errorf("problems of %q, want %q", paths, tc.problems)
			}
			if made.ID != "" || s.policy != nil {
				t.Error("a component was made")
			}
			if name == "no policy" && answer.GetDiagnostics()[0].GetSummary() != "the model cannot be read" {
				t.Errorf("it says %v", answer.GetDiagnostics())
			}
		})
	}
}

// TestCheckOnlyCreatesNothing checks settings while a component serves: it stays as it is.
func TestCheckOnlyCreatesNothing(t *testing.T) {
	s, made, _ := allocators(t, echo{})
	if _, err := s.Configure(t.Context(), mine("")); err != nil {
		t.Fatal(err)
	}
	*made = core.Settings{}
	q := mine(`{"most": 9}`)
	q.CheckOnly = true
	answer, err := s.Configure(t.Context(), q)
	if err != nil || answer.GetConfigJson() != `{"break":false,"most":9,"word":""}` || len(answer.GetCapabilities()) != 2 {
		t.Errorf("%v, error %v", answer, err)
	}
	if made.ID != "" || s.policy == nil || answer.GetExchange() {
		t.Errorf("made %+v, the policy is %v, exchange %v", made, s.policy, answer.GetExchange())
	}
}

// closer notes that it was closed.
type closer struct {
	echo
	closed int
	err    error
}

func (c *closer) Close() error { c.closed++; return c.err }

func TestThePolicyIsClosedAtTheEnd(t *testing.T) {
	var log strings.Builder
	policy := &closer{err: errors.New("the disk is full")}
	s, _, _ := allocators(t, policy)
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	s.closePolicy() // before Configure there is none
	if _, err := s.Configure(t.Context(), mine("")); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock() // it is in a call
	s.closePolicy()
	s.mu.Unlock()
	if policy.closed != 0 {
		t.Error("closed during a call")
	}
	s.closePolicy()
	if policy.closed != 1 || !strings.Contains(log.String(), "the disk is full") {
		t.Errorf("closed %d times, log %q", policy.closed, &log)
	}
	s.closePolicy() // the lock was given back
	if policy.closed != 2 {
		t.Errorf("closed %d times", policy.closed)
	}
}

func TestHealthAnswers(t *testing.T) {
	s, _, _ := allocators(t, echo{})
	if answer, err := s.Health(t.Context(), nil); answer == nil || err != nil {
		t.Errorf("%v, error %v", answer, err)
	}
}
