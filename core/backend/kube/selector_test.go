package kube

import (
	"fmt"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func attributes() map[string]*resourcev1.Device {
	whole, text, yes, version := int64(7), "a100", true, "1.10.0"
	return map[string]*resourcev1.Device{
		"bare": {},
		"full": {
			AllowMultipleAllocations: &yes,
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"index": {IntValue: &whole}, "model": {StringValue: &text}, "healthy": {BoolValue: &yes}, "driverVersion": {VersionValue: &version},
				"other.example.com/model": {StringValue: &text},
				"numa":                    {IntValues: []int64{0, 1}}, "links": {StringValues: []string{"a", "b"}}, "flags": {BoolValues: []bool{true}},
				"versions": {VersionValues: []string{"1.0.0", "2.0.0"}},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
				"memory": {Value: resource.MustParse("80Gi")}, "other.example.com/memory": {Value: resource.MustParse("1")},
			},
		},
		"odd": {Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {}}},
		"bad": {Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"version": {VersionValue: &text}}},
	}
}

// selectorCases are expressions, and what they are of a device that has all sorts of attributes: true, false, or an error that
// contains the words. The answers are those of the evaluator of Kubernetes 1.37.
var selectorCases = []struct{ expression, bare, full string }{
	{`true`, "true", "true"},
	{`device.driver == "gpu.example.com"`, "true", "true"},
	{`device.allowMultipleAllocations`, "false", "true"},
	{`device.attributes["gpu.example.com"].model == "a100"`, "no such key: model", "true"},
	{`"model" in device.attributes["gpu.example.com"] && device.attributes["gpu.example.com"].model == "h100"`, "false", "false"},
	{`has(device.attributes["other.example.com"].model)`, "false", "true"},
	{`device.attributes["nobody.example.com"].exists(k, k == "x")`, "false", "false"},
	{`device.attributes["gpu.example.com"].healthy`, "no such key: healthy", "true"},
	{`device.attributes["gpu.example.com"].model`, "no such key: model", "could not be converted to bool"},
	{`device.attributes["gpu.example.com"].?model.orValue("") == "a100"`, "false", "true"},
	{`cel.bind(gpu, device.attributes["gpu.example.com"], "index" in gpu && gpu.index >= 7)`, "false", "true"},
	{`device.attributes["gpu.example.com"].index + 0.5 > 7`, "no such key: index", "no such overload"},
	{`device.attributes["gpu.example.com"].index > 6.5`, "no such key: index", "true"},
	{`device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.9.0"))`, "no such key", "true"},
	{`device.attributes["gpu.example.com"].driverVersion.compareTo(semver("v1.10", true)) == 0`, "no such key", "true"},
	{`device.attributes["gpu.example.com"].numa.exists(n, n == 1)`, "no such key", "true"},
	{`device.attributes["gpu.example.com"].links.includes("b")`, "no such key", "true"},
	{`device.attributes["gpu.example.com"].model.includes("a100")`, "no such key", "true"},
	{`device.attributes["gpu.example.com"].versions.all(v, v.isGreaterThan(semver("0.9.0")))`, "no such key", "true"},
	{`device.attributes["gpu.example.com"].flags[0]`, "no such key", "true"},
	{`device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))`, "no such key: memory", "true"},
	{`device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) == 0`, "no such key: memory", "true"},
	{`"memory" in device.capacity["other.example.com"]`, "false", "true"},
	{`device.attributes["gpu.example.com"].all(k, v, k != "x")`, "true", "true"},
	{`"gpu.example.com".split(".").size() == 3 && "A".lowerAscii() == "a"`, "true", "true"},
	{`"a100".matches("^a[0-9]+$") && "xa100".find("a[0-9]+") == "a100"`, "true", "true"},
	{`sets.contains([1, 2], [1]) && [3, 1, 2].sort() == [1, 2, 3] && [1, 2].isSorted() && [1, 2].sum() == 3`, "true", "true"},
	{`url("https://example.com:80").getHost() == "example.com:80" && ip("10.0.0.1").family() == 4 && cidr("10.0.0.0/8").containsIP("10.1.1.1")`, "true", "true"},
	{`format.dns1123Label().validate("a").hasValue() == false`, "true", "true"},
	{`timestamp("2024-01-01T00:00:00Z").getHours() == 0 && duration("1h") > duration("30m")`, "true", "true"},
	{`dyn(1) == 1.0`, "true", "true"},
	{
		`[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f > 0))))))`,
		"cost limit exceeded", "cost limit exceeded",
	},
}

// refusedExpressions are expressions that are none, and what is said of them.
var refusedExpressions = map[string]string{
	`device.driver`:                  "must evaluate to bool or the unknown type, not string",
	`1`:                              "must evaluate to bool or the unknown type, not int",
	`device.serial == "x"`:           "undefined field 'serial'",
	`node.name == "a"`:               "undeclared reference to 'node'",
	`true &&`:                        "Syntax error",
	`"a".matches("(")`:               "invalid matches argument",
	`[1, "a"].exists(x, true)`:       "expected type 'int' but found 'string'",
	`duration("x") > duration("1h")`: "invalid duration argument",
}

// answerOf puts what an expression is of a device in words.
func answerOf(matches bool, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(matches)
}

// Expressions of device classes say what they say in Kubernetes.
func TestSelectors(t *testing.T) {
	c, err := newSelectorCompiler()
	if err != nil {
		t.Fatal(err)
	}
	devices := attributes()
	for _, tc := range selectorCases {
		s, err := c.compile(tc.expression)
		if err != nil {
			t.Errorf("%s: %v", tc.expression, err)
			continue
		}
		for name, want := range map[string]string{"bare": tc.bare, "full": tc.full} {
			if got := answerOf(s.matches("gpu.example.com", devices[name])); got != want && (want == "true" || want == "false" || !strings.Contains(got, want)) {
				t.Errorf("%s of a %s device is %q, want %q", tc.expression, name, got, want)
			}
		}
	}
	always, err := c.compile("true")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"odd": "attribute model: unsupported attribute value", "bad": "attribute version: parse semantic version"} {
		if got := answerOf(always.matches("gpu.example.com", devices[name])); !strings.HasPrefix(got, want) {
			t.Errorf("a device with a %s attribute: %q, want %q", name, got, want)
		}
	}
}

func TestSelectorsThatAreNone(t *testing.T) {
	c, err := newSelectorCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for expression, want := range refusedExpressions {
		if _, err := c.compile(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expression, err, want)
		}
	}
}
