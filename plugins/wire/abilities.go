package wire

import (
	"reflect"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// Ability is something that a component may do besides answering the calls of its stage, and that a plugin reports in its answer to
// Configure.
type Ability int

// The abilities; abilityTable says what each means.
const (
	LearnsFromEnds  Ability = iota // an elasticity that learns from how jobs end
	UsesCurves                     // an admission that looks at what jobs do with accelerators
	KeepsDeadlines                 // an admission that admits a job only if its deadline will be met
	ReviewsJobs                    // an admission that is asked about admitted jobs that reported
	FollowsReports                 // an elasticity that may answer otherwise once a job has reported
	GuaranteesTiers                // an allocation that guarantees tiers a part of the device time
	KnowsChanges                   // a plugin that knows of clusters and jobs that change
	KnowsReports                   // a plugin that knows what jobs report
	KnowsWithheld                  // a plugin that knows questions about some of the active jobs
	Precedes                       // an allocation whose grants come in order of precedence
	AskedOnce                      // an allocation that must be asked once a round
	KeepsReserved                  // a placement that seats nobody anew on devices that are reserved
	abilities                      // how many there are
)

// abilityRow is a row of abilityTable.
type abilityRow struct {
	ability Ability
	stage   stagev1.Stage // whose components can have it; unspecified for every stage
	by      string        // name of the interface of package core that gives it to a policy in Go; empty for what the SDK does for every policy
	field   string        // of ConfigureResponse, which reports it
	meaning string        // of the field, as docs/plugin-protocol.md has it, in Markdown
	has     func(can *core.Abilities) bool
}

// abilityTable lists every ability, in their order. It is the only list of them: what the SDK reports, what the host reads from a
// plugin or finds in a built-in policy, and the rows of docs/plugin-protocol.md follow from it.
func abilityTable() []abilityRow {
	always := func(*core.Abilities) bool { return true }
	return []abilityRow{
		{
			LearnsFromEnds, stagev1.Stage_STAGE_ELASTICITY, interfaceName[core.Historian](), "ends",
			"an elasticity that learns from how jobs end: `Respond` then reports them in `ended`; false when left out",
			func(can *core.Abilities) bool { return can.Historian != nil },
		},
		{
			UsesCurves, stagev1.Stage_STAGE_ADMISSION, interfaceName[core.CurveAdmitter](), "curves",
			"an admission that looks at what jobs do with accelerators: the view then holds the `response` of the admitted jobs and of those " +
				"that it is asked about, as it does for an allocation; false when left out",
			func(can *core.Abilities) bool { return can.CurveAdmitter != nil },
		},
		{
			KeepsDeadlines, stagev1.Stage_STAGE_ADMISSION, interfaceName[core.Promiser](), "promises",
			"an admission that admits a job with a deadline only if the deadline will be met: a deadline that such a job misses counts as a " +
				"broken promise; false when left out",
			(*core.Abilities).Promises,
		},
		{
			ReviewsJobs, stagev1.Stage_STAGE_ADMISSION, interfaceName[core.Reviewer](), "reviews",
			"an admission that is also asked by [`Review`](#admissionservice); false when left out",
			func(can *core.Abilities) bool { return can.Reviewer != nil },
		},
		{
			FollowsReports, stagev1.Stage_STAGE_ELASTICITY, interfaceName[core.ReportFollower](), "follows_reports",
			"an elasticity that may answer otherwise once a job has reported: reports then start rounds; false when left out. `Respond` is " +
				"asked about jobs that reported in any case",
			(*core.Abilities).FollowsReports,
		},
		{
			GuaranteesTiers, stagev1.Stage_STAGE_ALLOCATION, interfaceName[core.Guarantor](), "guarantees",
			"an allocation that guarantees tiers: the parts of the device time they request that `premium`, `standard` and `basic` jobs are " +
				"guaranteed, in this order, each from 0 to 1. The [summary](outputs.md) judges hours by them; without, by those of " +
				"`gpu_fraction`, 0.95, 0.7 and 0",
			func(can *core.Abilities) bool { return can.Guarantor != nil },
		},
		{
			KnowsChanges, stagev1.Stage_STAGE_UNSPECIFIED, "", "changing",
			"the plugin knows all that this page says of nodes that come and go and lose single devices, and of jobs that start, are edited or " +
				"suspended; false when left out. To any other plugin such a node is sent as one that is down, and such jobs are not reported",
			always,
		},
		{
			KnowsReports, stagev1.Stage_STAGE_UNSPECIFIED, "", "reports",
			"the plugin knows what jobs report, that an active job may be pending again, and each reason of a [verdict](#verdict); false when " +
				"left out. To any other plugin no report is sent, such a job is sent by a full update, and reasons from `deadline_unreachable` on " +
				"are sent as `policy_decision`",
			always,
		},
		{
			KnowsWithheld, stagev1.Stage_STAGE_UNSPECIFIED, "", "withheld",
			"the plugin knows `withheld` and `narrowed` of an [AllocateRequest](#allocaterequest); false when left out. An allocation of any other " +
				"plugin is asked once a round",
			always,
		},
		{
			Precedes, stagev1.Stage_STAGE_ALLOCATION, interfaceName[core.Precedent](), "precedes",
			"an allocation whose grants come in order of precedence: a job that cannot be placed may take the devices of running jobs that " +
				"were granted after it; false when left out",
			(*core.Abilities).Precedes,
		},
		{
			AskedOnce, stagev1.Stage_STAGE_ALLOCATION, interfaceName[core.OncePerRound](), "asked_once",
			"an allocation that must be asked once a round, since what it answers in later rounds follows from how often it is asked; false when " +
				"left out",
			func(can *core.Abilities) bool { return !can.AskedAgain() },
		},
		{
			KeepsReserved, stagev1.Stage_STAGE_PLACEMENT, interfaceName[core.ReservedKeeper](), "keeps_reserved",
			"a placement that seats nobody on `reserved` of a [PlaceRequest](#placerequest) but jobs that stay there; false when left out. " +
				"Beside any other nothing is reserved",
			(*core.Abilities).KeepsReserved,
		},
	}
}

func interfaceName[I any]() string { return reflect.TypeFor[I]().Name() }

// Abilities are those of one component. The zero value has none.
type Abilities struct {
	set [abilities]bool
	// Guarantees are the parts of the device time that an allocation guarantees to each tier, from 0 to 1; nil without
	// GuaranteesTiers.
	Guarantees *core.Guarantees
}

// Able returns abilities, without guarantees.
func Able(list ...Ability) (a Abilities) {
	for _, x := range list {
		a.set[x] = true
	}
	return a
}

// Has reports whether an ability is among them.
func (a Abilities) Has(x Ability) bool { return a.set[x] }

// AbilitiesOf finds out what a policy in this process can do.
func AbilitiesOf(policy any) (a Abilities) {
	can := core.AbilitiesOf(policy)
	for _, row := range abilityTable() {
		a.set[row.ability] = row.has(&can)
	}
	if can.Guarantor != nil {
		guarantees := can.Guarantor.Guarantees()
		a.Guarantees = &guarantees
	}
	return a
}

// AbilitiesFrom reads the abilities that a plugin reports.
func AbilitiesFrom(m *stagev1.ConfigureResponse) (a Abilities) {
	for _, row := range abilityTable() {
		if field := row.fieldOf(m); !field.IsList() {
			a.set[row.ability] = m.ProtoReflect().Get(field).Bool()
		}
	}
	if guarantees := m.GetGuarantees(); len(guarantees) == len(core.Guarantees{}) {
		a.set[GuaranteesTiers], a.Guarantees = true, (*core.Guarantees)(guarantees)
	}
	return a
}

// Report writes the abilities into the answer to Configure.
func (a Abilities) Report(m *stagev1.ConfigureResponse) {
	for _, row := range abilityTable() {
		if field := row.fieldOf(m); !field.IsList() {
			m.ProtoReflect().Set(field, protoreflect.ValueOfBool(a.set[row.ability]))
		}
	}
	if a.Guarantees != nil {
		m.Guarantees = a.Guarantees[:]
	}
}

// fieldOf returns the field of the answer to Configure that reports the ability: a bool, or the list of guarantees.
func (r abilityRow) fieldOf(m *stagev1.ConfigureResponse) protoreflect.FieldDescriptor {
	return m.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(r.field))
}
