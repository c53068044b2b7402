package core

// Fork is the pipeline as it stands.
func (p *Pipeline) Fork(s Stages, observers ...Observer) *Pipeline { return p }

// View is the state after the last round.
func (p *Pipeline) View() *View { return &p.state.view }
