package trainingjob

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// filled sets everything that a value leads to.
func filled(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), depth)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			v.Set(reflect.ValueOf(metav1.Unix(1_700_000_000, 0)))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Type != reflect.TypeFor[runtime.Object]() && v.Field(i).CanSet() {
				filled(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		filled(v.Index(0), depth+1)
		filled(v.Index(1), depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		filled(key, depth+1)
		filled(value, depth+1)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(depth + 1))
	case reflect.Uint8:
		v.SetUint('1')
	case reflect.Float64:
		v.SetFloat(1.5)
	}
}

// shared finds memory that two values have in common.
func shared(t *testing.T, at string, a, b reflect.Value) {
	switch a.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if !a.IsNil() && a.Pointer() == b.Pointer() {
			if a.Type() == reflect.TypeFor[*time.Location]() {
				return
			}
			t.Errorf("%s is shared with the copy", at)
			return
		}
	}
	switch a.Kind() {
	case reflect.Pointer:
		if !a.IsNil() {
			shared(t, at, a.Elem(), b.Elem())
		}
	case reflect.Struct:
		for i := range a.NumField() {
			shared(t, at+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	case reflect.Slice:
		for i := range a.Len() {
			shared(t, at+"[]", a.Index(i), b.Index(i))
		}
	}
}

// A copy is equal and shares nothing: whatever is added to the types has to be copied too.
func TestDeepCopy(t *testing.T) {
	list := new(TrainingJobList)
	filled(reflect.ValueOf(list).Elem(), 0)
	to := list.DeepCopyObject().(*TrainingJobList)
	if diff := cmp.Diff(list, to); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	shared(t, "list", reflect.ValueOf(list), reflect.ValueOf(to))
	one := list.Items[0].DeepCopyObject().(*TrainingJob)
	shared(t, "job", reflect.ValueOf(&list.Items[0]), reflect.ValueOf(one))
	for name, empty := range map[string]runtime.Object{"job": (*TrainingJob)(nil), "list": (*TrainingJobList)(nil)} {
		if got := empty.DeepCopyObject(); got != nil {
			t.Errorf("the copy of no %s is %v", name, got)
		}
	}
	if diff := cmp.Diff(&TrainingJob{}, (&TrainingJob{}).DeepCopy()); diff != "" {
		t.Errorf("of an empty one (-want +got):\n%s", diff)
	}
}

// What is written is read as the same, and an apply holds the status and nothing else that people own.
func TestJSON(t *testing.T) {
	full := new(TrainingJob)
	filled(reflect.ValueOf(full).Elem(), 0)
	full.Spec.Template.Raw = []byte(`{"spec":{}}`)
	text, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	back := new(TrainingJob)
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full, back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSetCondition(t *testing.T) {
	var s Status
	first := time.Date(2026, 11, 22, 15, 0, 0, 999, time.FixedZone("here", 3600))
	at := func(minutes int) time.Time { return first.Add(time.Duration(minutes) * time.Minute) }
	steps := []struct {
		name        string
		status      metav1.ConditionStatus
		reason      string
		minutes     int
		wantChanged bool
		wantMinutes int
	}{
		{"first", metav1.ConditionFalse, "NoDevices", 0, true, 0},
		{"the same again", metav1.ConditionFalse, "NoDevices", 1, false, 0},
		{"another reason", metav1.ConditionFalse, "Starting", 2, true, 0},
		{"another status", metav1.ConditionTrue, "Running", 3, true, 3},
		{"again", metav1.ConditionTrue, "Running", 4, false, 3},
		{"back", metav1.ConditionFalse, "Stopped", 5, true, 5},
	}
	for _, step := range steps {
		changed := s.SetCondition(ConditionRunning, step.status, step.reason, "why", 2, at(step.minutes))
		got, want := s.Condition(ConditionRunning), at(step.wantMinutes).Truncate(time.Second)
		if changed != step.wantChanged || got.Status != step.status || got.Reason != step.reason ||
			!got.LastTransitionTime.Time.Equal(want) || got.LastTransitionTime.Location() != time.UTC || len(s.Conditions) != 1 {
			t.Errorf("%s: changed %v, %+v, want %v since %v", step.name, changed, *got, step.wantChanged, want)
		}
	}
	if s.Condition(ConditionFinished) != nil {
		t.Error("a condition that was never set is found")
	}
}

func TestLongMessages(t *testing.T) {
	for name, text := range map[string]string{"one byte": strings.Repeat("x", 3000), "three bytes": strings.Repeat("…", 1000), "fits": strings.Repeat("y", longest)} {
		var s Status
		s.SetCondition(ConditionDegraded, metav1.ConditionTrue, "Long", text, 0, time.Unix(0, 0))
		got := s.Condition(ConditionDegraded).Message
		kept := strings.TrimSuffix(got, "…")
		if len(got) > longest || len(got) < longest-3 || !utf8.ValidString(got) || !strings.HasPrefix(text, kept) || (len(text) <= longest) != (got == text) {
			t.Errorf("%s: %d bytes are left: %q", name, len(got), got)
		}
	}
}

func TestEnded(t *testing.T) {
	want := map[State]bool{
		Pending: false, Waiting: false, Starting: false, Running: false, Suspended: false,
		Completed: true, Rejected: true, Failed: true,
	}
	for state, ended := range want {
		if state.Ended() != ended {
			t.Errorf("%s has ended: %v, want %v", state, !ended, ended)
		}
	}
}
