package configs

import (
	"github.com/quartet-sched/quartet/core"
)

// Schema is the JSON schema of a config, with the settings of every component of the catalog: what editors complete
// and check.
func Schema(c Catalog) map[string]any {
	f := defaultFile()
	schema := core.SchemaOf(&f)
	schema["$schema"] = core.SchemaDialect
	schema["title"] = "quartet config"
	properties := schema["properties"].(map[string]any)
	schema["required"] = []any{"version", "cluster", "workload", "pipeline"}

	describe(properties, "workload", componentSchema(c.Workload))
	describe(properties, "backend", componentSchema(c.Backend))
	pipeline := propertiesOf(properties, "pipeline")
	properties["pipeline"].(map[string]any)["required"] = []any{"allocation"}
	describe(pipeline, "allocation", policySchema(c.Allocation))
	describe(pipeline, "placement", policySchema(c.Placement))
	pipeline["admission"].(map[string]any)["items"] = policySchema(c.Admission)
	elasticity := propertiesOf(pipeline, "elasticity")
	describe(elasticity, "job", policySchema(c.Elasticity))
	describe(elasticity, "cluster", policySchema(c.Scaler))
	synthesizerSchema(properties)
	return schema
}

func propertiesOf(properties map[string]any, name string) map[string]any {
	return properties[name].(map[string]any)["properties"].(map[string]any)
}

// describe replaces the schema of a component by one that knows its types.
func describe(properties map[string]any, name string, schema map[string]any) {
	schema["description"] = properties[name].(map[string]any)["description"]
	properties[name] = schema
}

// policySchema is componentSchema for a stage, whose component may live in another process.
func policySchema[S any](factories []core.Factory[S]) map[string]any {
	schema := componentSchema(factories)
	options := defaultPluginOptions()
	plugin := core.SchemaOf(&options)
	plugin["description"] = "how a policy in another process is kept"
	properties := schema["properties"].(map[string]any)
	properties["plugin"] = plugin
	properties["type"].(map[string]any)["description"] = "type of the component, built in or of a plugin; those of plugins are listed if they were known when the schema was written"
	properties["isolate"] = map[string]any{"type": "boolean", "default": false, "description": "run a built-in in a process of its own"}
	return schema
}

// componentSchema ties each type to the settings of its factory.
func componentSchema[S any](factories []core.Factory[S]) map[string]any {
	types := []any{}
	cases := []any{}
	for _, f := range factories {
		types = append(types, f.Type)
		config := f.Schema()
		if config == nil { // the plugin does not tell
			config = map[string]any{"type": "object"}
		}
		delete(config, "$schema")
		cases = append(cases, map[string]any{
			"if":   map[string]any{"properties": map[string]any{"type": map[string]any{"const": f.Type}}},
			"then": map[string]any{"properties": map[string]any{"config": config}},
		})
	}
	schema := map[string]any{
		"type":                 "object",
		"additionalProperties": false,
		"required":             []any{"type"},
		"properties": map[string]any{
			"type":   map[string]any{"enum": types, "description": "type of the component"},
			"config": map[string]any{"type": "object", "description": "its settings"},
		},
	}
	if len(cases) > 0 {
		schema["allOf"] = cases
	}
	return schema
}
