package kube

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	resourcev1 "k8s.io/api/resource/v1"
	apicel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// deviceVariable is what an expression calls the device that it is about.
const deviceVariable = "device"

// selectorCompiler compiles the CEL expressions by which DeviceClasses select devices. Its language is that of expressions which an
// API server has stored, in any version that is supported: k8s.io/dynamic-resource-allocation/cel has the same, and links the
// feature gates and metrics of an API server.
type selectorCompiler struct {
	env *cel.Env
}

// selector is an expression that is true of the devices of a class.
type selector struct {
	program cel.Program
	adapter types.Adapter
}

// newSelectorCompiler makes a compiler. It takes some milliseconds, so it is made when a class is read first.
func newSelectorCompiler() (*selectorCompiler, error) {
	attributes := mapOf(mapOf(apicel.DynType))
	device := objectOf("kubernetes.DRADevice", map[string]*apicel.DeclType{
		"driver": apicel.StringType, "allowMultipleAllocations": apicel.BoolType,
		"attributes": attributes, "capacity": mapOf(mapOf(apicel.QuantityDeclType)),
	})
	base, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals(), cel.ValidateHomogeneousAggregateLiterals()),
		library.URLs(), library.Regex(), library.Quantity(), library.IP(), library.CIDR(), library.Format(),
		library.SemverLib(library.SemverVersion(1)), library.Lists(library.ListsVersion(1)),
		library.Authz(), library.AuthzSelectors(),
		ext.Strings(ext.StringsVersion(2)), ext.Sets(), ext.TwoVarComprehensions(), ext.Lists(ext.ListsVersion(3)), ext.Bindings(ext.BindingsVersion(0)),
	)
	if err != nil {
		return nil, fmt.Errorf("the CEL environment of device selectors: %w", err)
	}
	provider := apicel.NewDeclTypeProvider(device)
	provider.SetRecognizeKeywordAsFieldName(true)
	declared, err := provider.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, fmt.Errorf("the CEL type of a device: %w", err)
	}
	env, err := base.Extend(append(declared, cel.Variable(deviceVariable, device.CelType()))...)
	if err != nil {
		return nil, fmt.Errorf("the CEL environment of device selectors: %w", err)
	}
	return &selectorCompiler{env}, nil
}

func mapOf(element *apicel.DeclType) *apicel.DeclType {
	return apicel.NewMapType(apicel.StringType, element, resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice)
}

func objectOf(name string, fields map[string]*apicel.DeclType) *apicel.DeclType {
	declared := map[string]*apicel.DeclField{}
	for field, kind := range fields {
		declared[field] = apicel.NewDeclField(field, kind, true, nil, nil)
	}
	return apicel.NewObjectType(name, declared)
}

// compile compiles an expression. It must be a bool, or of a type that is known only once there is a device.
func (c *selectorCompiler) compile(expression string) (*selector, error) {
	ast, issues := c.env.Compile(expression)
	if issues.Err() != nil {
		return nil, fmt.Errorf("compilation failed: %s", issues)
	}
	if kind := ast.OutputType(); !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("must evaluate to bool or the unknown type, not %s", kind)
	}
	program, err := c.env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost),
		cel.CostTracking(&library.CostEstimator{}), cel.CostTrackerOptions(interpreter.PresenceTestHasCost(false)),
		cel.CostLimit(resourcev1.CELSelectorExpressionMaxCost))
	if err != nil {
		return nil, fmt.Errorf("program instantiation failed: %w", err)
	}
	return &selector{program, c.env.CELTypeAdapter()}, nil
}

// matches reports whether an expression is true of a device. Names without a domain are of the domain of the driver.
func (s *selector) matches(driver string, d *resourcev1.Device) (bool, error) {
	attributes, capacity := map[string]any{}, map[string]any{}
	for name, attribute := range d.Attributes {
		value, err := valueOf(&attribute)
		if err != nil {
			return false, fmt.Errorf("attribute %s: %w", name, err)
		}
		domain, id := qualified(name, driver)
		within[any](attributes, domain)[id] = value
	}
	for name, c := range d.Capacity {
		domain, id := qualified(name, driver)
		within[apicel.Quantity](capacity, domain)[id] = apicel.Quantity{Quantity: &c.Value}
	}
	result, _, err := s.program.Eval(map[string]any{deviceVariable: map[string]any{
		"driver": driver, "allowMultipleAllocations": d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations,
		"attributes": s.emptyByDefault(attributes), "capacity": s.emptyByDefault(capacity),
	}})
	if err != nil {
		return false, err
	}
	native, err := result.ConvertToNative(reflect.TypeFor[bool]())
	if err != nil {
		return false, fmt.Errorf("CEL result of type %s could not be converted to bool: %w", result.Type().TypeName(), err)
	}
	matches, is := native.(bool)
	if !is {
		return false, fmt.Errorf("CEL result of type %s is no bool", result.Type().TypeName())
	}
	return matches, nil
}

// within is the map of a domain, which is made if there is none.
func within[T any](domains map[string]any, domain string) map[string]T {
	ids, is := domains[domain].(map[string]T)
	if !is {
		ids = map[string]T{}
		domains[domain] = ids
	}
	return ids
}

// qualified splits a name into its domain and the rest.
func qualified(name resourcev1.QualifiedName, driver string) (domain, id string) {
	domain, id, is := strings.Cut(string(name), "/")
	if !is {
		return driver, string(name)
	}
	return domain, id
}

// valueOf is the value of an attribute as CEL knows it.
func valueOf(a *resourcev1.DeviceAttribute) (any, error) {
	switch {
	case a.IntValues != nil:
		return a.IntValues, nil
	case a.BoolValues != nil:
		return a.BoolValues, nil
	case a.StringValues != nil:
		return a.StringValues, nil
	case a.VersionValues != nil:
		versions := make([]apicel.Semver, len(a.VersionValues))
		for i, text := range a.VersionValues {
			v, err := semver.Parse(text)
			if err != nil {
				return nil, fmt.Errorf("parse semantic version: %w", err)
			}
			versions[i] = apicel.Semver{Version: v}
		}
		return versions, nil
	case a.IntValue != nil:
		return *a.IntValue, nil
	case a.BoolValue != nil:
		return *a.BoolValue, nil
	case a.StringValue != nil:
		return *a.StringValue, nil
	case a.VersionValue != nil:
		v, err := semver.Parse(*a.VersionValue)
		if err != nil {
			return nil, fmt.Errorf("parse semantic version: %w", err)
		}
		return apicel.Semver{Version: v}, nil
	default:
		return nil, errors.New("unsupported attribute value")
	}
}

// domains are the attributes or capacities of a device by domain. A domain that the device has nothing of is an empty map.
type domains struct {
	traits.Mapper
	empty ref.Val
}

func (s *selector) emptyByDefault(of map[string]any) domains {
	return domains{types.NewStringInterfaceMap(s.adapter, of), s.adapter.NativeToValue(map[string]any{})}
}

// Find returns what the device has of a domain.
func (d domains) Find(key ref.Val) (ref.Val, bool) {
	if value, found := d.Mapper.Find(key); found {
		return value, true
	}
	return d.empty, true
}
