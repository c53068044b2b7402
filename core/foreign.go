package core

// Foreign says how to reach the settings of a component that lives elsewhere, such as in a plugin.
type Foreign struct {
	Fields func() []Field // describes the settings, in the order in which they are shown
	// Info is what the component says of itself, where it cannot be known before it is asked; nil where the factory's own Info is all. Asked
	// only once settings were decoded.
	Info   func() Info
	Schema func() map[string]any // JSON schema of the settings
	// Decode checks settings and returns them with every default filled in, in the form that Encode gives, together
	// with the capabilities that they need. The paths of problems are relative to the settings.
	Decode func(raw map[string]any) (settings map[string]any, needs []Capability, ds Diagnostics)
}

// NewForeignFactory is NewFactory for a component without a Config struct on this side: everything it says of its
// settings is asked from foreign.
func NewForeignFactory[S any](info Info, foreign Foreign, build func(settings map[string]any, s Settings) (S, error)) Factory[S] {
	return Factory[S]{
		Info:    info,
		foreign: &foreign,
		build:   func(config any, s Settings) (S, error) { return build(config.(*foreignConfig).settings, s) },
	}
}

// Described is the factory with all that its component says of itself. It may have to be asked for that, so that this is for a component which is
// to be used.
func (f Factory[S]) Described() Factory[S] {
	if f.foreign != nil && f.foreign.Info != nil {
		f.Info = f.foreign.Info()
	}
	return f
}

// foreignConfig is what Decode of a foreign factory returns.
type foreignConfig struct {
	settings map[string]any
	needs    []Capability
	fields   []Field
}

// Capabilities are those that these settings need.
func (c *foreignConfig) Capabilities() []Capability { return c.needs }

func (f *Foreign) decode(raw map[string]any) (config any, ds Diagnostics) {
	settings, needs, ds := f.Decode(raw)
	if len(ds) > 0 {
		return nil, ds
	}
	return &foreignConfig{settings: settings, needs: needs, fields: f.Fields()}, nil
}
