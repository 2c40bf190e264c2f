package main

// fpga shows what is loaded on which card, whether loading works, the health of the
// cards; and AMD GPUs, of which the kernel reports other values than of NVIDIA's.
func fpga() board {
	return board{
		uid: "accel-fpga", title: "Accelerators / FPGA and AMD", from: "now-6h",
		about:     "FPGA cards: what is loaded, reconfigurations, errors, power and heat, work and traffic. AMD GPUs: health, use, memory errors and links.",
		variables: []variable{datasource, cluster, pool, cardNodes, instances, cards},
		events:    []event{alerts(onPools, ` and on (cluster, node, device) (accel_fpga_info{`+inCards+`} or accel_device_info{vendor="amd",`+inCards+`})`)},
		rows: []row{
			{title: "FPGAs: is something wrong?", panels: fpgaNow()},
			{title: "FPGAs: cards and designs", panels: []panel{fpgaCards(), fpgaDesigns()}},
			{title: "FPGAs: reconfigurations and errors", panels: fpgaErrors()},
			{title: "FPGAs: power and heat", folded: true, panels: fpgaHeat()},
			{title: "FPGAs: compute units", folded: true, panels: fpgaWork()},
			{title: "AMD GPUs", panels: amdGPUs()},
		},
	}
}

const (
	inCards = inPool + `,instance=~"$instance",device=~"$device"`
	inAMD   = `vendor="amd",class="gpu",` + inCards
	aCard   = `accel_fpga_info{` + inCards + `}`
	noCards = "No FPGA is selected"
	notHere = "No FPGA of this selection measures it"
	noAMD   = "No AMD GPU in this selection"
)

// onCard is a query whose legend is the cluster, the node, the PCI address of the card
// and the given labels.
func onCard(expr, further string) query {
	return query{host(expr), "{{cluster}} {{host}} {{device}}" + further}
}

// ofFPGA leaves the series of cards of a family that other devices have too.
func ofFPGA(expr string) string { return expr + ` and ` + perDevice + ` ` + aCard }

var (
	unitStates = []state{{"crashed", "crashed", red}, {"running", "running", green}}
	cardColumn = column{of: "device", title: "Id", jump: jumpTo("accel-fpga", "This card", "cluster", cell("Scope"), "node", cell("Node"), "device", cell("Id"))}
)

func fpgaNow() []panel {
	return tiles(
		panel{
			title: "Cards", scale: only(blue), empty: noCards,
			about:   "FPGA cards in this selection. Listed below.",
			queries: []query{{expr: `count(` + aCard + `)`}},
		},
		panel{
			title: "Failed cards", scale: bad(1), empty: noCards,
			about:   "Cards whose verdict is failed or unknown. Listed below.",
			queries: count(ofFPGA(verdict(inCards, "failed|unknown")), aCard),
		},
		panel{
			title: "Allocated, no design", scale: bad(1), empty: "Design or pods unknown",
			about:   "Regions that are empty, or being configured, on cards that are allocated to a pod. FpgaBitstreamMissing fires when it lasts.",
			queries: count(`accel_fpga_bitstream_loaded{`+inCards+`} == 0 and `+perDevice+` accel_device_holders > 0`, `accel_fpga_bitstream_loaded{`+inCards+`} and `+perDevice+` accel_device_holders`),
		},
		panel{
			title: "Failed reconfigurations", decimals: f(0), scale: bad(0.5), empty: "No card reports them",
			about:   "Loads that failed in the time range.",
			queries: []query{{expr: `sum(increase(accel_fpga_reconfigurations_total{outcome="failed",` + inCards + `}[$__range]))`}},
		},
		panel{
			title: "Latched error bits", scale: upFrom(1, orange), empty: "No error registers",
			about:   "Bits that are set in error registers. Each stays set until it is cleared. Listed below.",
			queries: []query{{expr: `sum(accel_fpga_errors_latched{` + inCards + `})`}},
		},
		panel{
			title: "Designs not approved", scale: upFrom(1, orange), empty: noBaseline,
			about:   "Cards whose bitstream or root key differs from the baseline, or from the resource name of its allocation. *Fleet* lists them.",
			queries: count(`group by (`+target+`, device) (accel_drift{component=~".+/.+",`+inCards+`} == 1)`, `accel_drift{component=~".+/.+",`+inCards+`}`),
			link:    jumpTo("accel-fleet", "Drift"),
		},
	)
}

func fpgaCards() panel {
	of := func(expr string) query {
		return query{expr: keep(host(`max by (`+target+`, device) (`+expr+`) * `+perDevice+` group_left (model) accel_device_info{class="fpga",`+inCards+`}`), "host, device, model")}
	}
	return panel{
		kind: listing, title: "Cards, the sickest first", width: 14, height: 10, empty: noCards,
		about:   "Current state of every card. An empty cell means not measured, not 0.",
		queries: []query{of(healthOf(inCards)), of(`accel_device_holders{` + inCards + `}`), of(`accel_power_watts{` + inCards + `}`), of(`accel_temperature_celsius{` + inCards + `}`), of(`sum by (` + target + `, device) (accel_fpga_errors_latched{` + inCards + `})`)},
		columns: []column{
			clusterColumn.wide(60), nodeColumn.wide(70), cardColumn.wide(105),
			{of: "A", title: "Health", states: healthStates, width: 85, sort: true},
			{of: "model", title: "Model"},
			{of: "B", title: "Pods", width: 50},
			{of: "C", title: "Power", unit: "watt", width: 60},
			{of: "D", title: "Hottest", unit: "celsius", width: 65},
			{of: "E", title: "Errors", width: 60, scale: &scale{none, []step{{1, orange}}}},
		},
	}
}

func fpgaDesigns() panel {
	return panel{
		kind: listing, title: "Loaded designs", width: 10, height: 10, empty: "No card reports what is loaded",
		about:   "Designs by card and region, as the driver names them. firmware is the requested image, which does not prove what is in the fabric.",
		queries: []query{{expr: keep(host(`accel_fpga_bitstream_info{`+inCards+`}`), "host, device, region, kind, id")}},
		columns: []column{clusterColumn.wide(60), nodeColumn.wide(60), {of: "device", title: "Card", width: 105}, {of: "region", title: "Region", width: 60}, {of: "kind", title: "Kind"}, {of: "id", title: "Bitstream"}},
	}
}

func fpgaErrors() []panel {
	return []panel{
		third(panel{
			kind: bars, title: "Reconfigurations", stacked: true, min: f(0), empty: "No card reports reconfigurations",
			about:   "Loads of a design by outcome. A failed load leaves the region without a design.",
			queries: []query{{`sum by (outcome) (` + grew(`accel_fpga_reconfigurations_total{`+inCards+`}`) + `)`, "{{outcome}}"}},
			colours: []state{{value: "ok", colour: green}, {value: "failed", colour: red}},
		}),
		third(panel{
			kind: timeline, title: "Regions", empty: "No card reports whether a region is loaded", states: []state{{"1", "loaded", green}, {"0", "empty", orange}},
			about:   "Whether each region has a usable design. Short gaps are reconfigurations.",
			queries: []query{onCard(`max by (`+target+`, device, region) (accel_fpga_bitstream_loaded{`+inCards+`})`, " {{region}}")},
		}),
		third(panel{
			kind: bars, title: "New errors", stacked: true, min: f(0), empty: "No new error, or no card counts them",
			about: "New error bits of each unit, of which fatal, catfatal and firewall lose work; and ECC errors of memory banks, of which an uncorrected one means that data is already wrong.",
			queries: []query{
				onCard(`sum by (`+target+`, device, unit) (`+grew(`accel_fpga_errors_total{`+inCards+`}`)+` > 0)`, " {{unit}}"),
				onCard(`sum by (`+target+`, device, severity) (`+grew(`accel_fpga_memory_ecc_errors_total{`+inCards+`}`)+` > 0)`, " memory {{severity}}"),
			},
		}),
		half(panel{
			kind: listing, title: "Latched errors", empty: "No bit is set, or no card has error registers",
			about:   "Bits that are set now. They stay set until they are cleared; unit and name are the driver's.",
			queries: []query{{expr: keep(host(`accel_fpga_error_latched{`+inCards+`} == 1`), "host, device, unit, error")}},
			columns: []column{clusterColumn.wide(50), nodeColumn.wide(55), cardColumn.wide(105), {of: "unit", title: "Unit"}, {of: "error", title: "Error"}},
		}),
		half(panel{
			kind: timeline, title: "Firewalls and memory", states: []state{{"0", "in order", green}, {"1", "faulty", red}}, empty: "No card with firewalls or calibrated memory",
			about: "A tripped firewall isolates the design until the card is reset. Memory that is not calibrated cannot be used, which is normal only while the card is configured.",
			queries: []query{
				onCard(`max by (`+target+`, device, firewall) (accel_fpga_firewall_tripped{`+inCards+`})`, " firewall {{firewall}}"),
				onCard(`1 - min by (`+target+`, device, bank) (accel_fpga_memory_calibrated{`+inCards+`})`, " memory {{bank}}"),
			},
		}),
	}
}

func fpgaHeat() []panel {
	return []panel{
		half(panel{
			kind: lines, title: "Power as a share of its limit", unit: "percentunit", min: f(0), empty: "No card with a limit on its power",
			about:   "Power as a share of the lowest limit that is set. At the limit the card throttles or shuts down.",
			queries: []query{onCard(`accel_power_watts{`+inCards+`} / `+perDevice+` min by (`+target+`, device) (accel_fpga_power_threshold_watts{`+inCards+`} or accel_power_limit_watts{limit=~"max|slowdown|shutdown",`+inCards+`} and `+perDevice+` accel_fpga_info)`, "")},
		}),
		half(panel{
			kind: lines, title: "Temperatures", unit: "celsius", empty: notHere,
			about:   "The hottest sensor of each card.",
			queries: []query{onCard(ofFPGA(`max by (`+target+`, device) (accel_temperature_celsius{`+inCards+`})`), "")},
		}),
		half(panel{
			kind: lines, title: "Margin to the next limit", unit: "celsius", limitLine: true, empty: "No card with a limit on a temperature",
			about:   "Degrees left at the sensor that is nearest to its limit. AcceleratorsHot fires below the line.",
			scale:   scale{none, []step{{nearLimitCelsius, red}}},
			queries: []query{onCard(ofFPGA(`min by (`+target+`, device) (accel_temperature_limit_celsius{`+inCards+`} - on (`+target+`, device, sensor) group_left () accel_temperature_celsius{`+inCards+`})`), "")},
		}),
		half(panel{
			kind: lines, title: "Voltages: distance from their mean", unit: "percentunit", empty: "No card measures voltages",
			about:   "Deviation of each voltage from its mean of the last hour, for the ten largest. A deviation of more than five percent points to a failing power supply or board." + needsDetail("healthy cards"),
			queries: []query{onCard(`topk(10, abs(accel_fpga_voltage_volts{`+inCards+`} / avg_over_time(accel_fpga_voltage_volts{`+inCards+`}[1h]) - 1))`, " {{sensor}}")},
		}),
	}
}

func fpgaWork() []panel {
	return []panel{
		half(panel{
			kind: lines, title: "Runs of compute units", unit: "ops", min: f(0), empty: "No card that counts runs",
			about:   "Runs of each compute unit per second. No driver reports the utilization of an FPGA; under XRT this is the closest value.",
			queries: []query{onCard(`rate(accel_fpga_executions_total{`+inCards+`}[$__rate_interval])`, " {{unit}}")},
		}),
		half(panel{
			kind: listing, title: "Compute units", empty: "No card with compute units",
			about:   "State of each compute unit. crashed: programs that wait for it never continue.",
			queries: []query{{expr: keep(host(`accel_fpga_compute_unit_state{`+inCards+`} == 1`), "host, device, unit, state")}},
			columns: []column{{of: "state", title: "State", states: unitStates, width: 75, sortUp: true}, nodeColumn.wide(75), cardColumn.wide(105), {of: "unit", title: "Unit"}},
		}),
	}
}

// amdGPUs has what the kernel reports of AMD GPUs; the dashboard of the node has the rest.
func amdGPUs() []panel {
	row := func(expr string) query {
		return onDevices(inAMD, `max by (`+target+`, device) (`+expr+`)`, "", "model", "profile")
	}
	gpu := func(by, expr, further string) query {
		return query{`sum by (cluster, host, name` + by + `) (` + host(named(inAMD, expr)) + `)`, "{{cluster}} {{host}} {{name}}" + further}
	}
	return []panel{
		{
			kind: listing, title: "AMD GPUs, the sickest first", width: 24, height: 9, empty: noAMD,
			about:   "Current state of every GPU and partition. An empty cell means not measured, not 0: a GPU that sleeps is not woken.",
			queries: []query{row(healthOf(inCards)), row(`accel_device_holders{` + inCards + `}`), row(`accel_utilization_ratio{engine="compute",` + inCards + `}`), row(share(inCards)), row(`accel_power_watts{` + inCards + `}`), row(`accel_temperature_celsius{` + inCards + `}`), row(`sum by (` + target + `, device) (accel_ecc_errors_total{severity="uncorrected",` + inCards + `})`)},
			columns: []column{
				nodeColumn, nameColumn,
				{of: "A", title: "Health", states: healthStates, width: 90, sort: true},
				{of: "model", title: "Model"},
				{of: "profile", title: "Partition", width: 85},
				{of: "B", title: "Pods", width: 60},
				{of: "C", title: "Use", unit: "percentunit", width: 100, gauge: true},
				{of: "D", title: "Memory", unit: "percentunit", width: 100, gauge: true},
				{of: "E", title: "Power", unit: "watt", width: 75},
				{of: "F", title: "Hottest", unit: "celsius", width: 75},
				{of: "G", title: "Uncorrected", width: 95, scale: &scale{none, []step{{1, red}}}},
			},
		},
		whole(panel{
			kind: bars, title: "RAS errors by block", stacked: true, min: f(0), empty: "No new error, or no AMD GPU counts them",
			about:   "New errors that the driver counted, by severity and block of the GPU. Uncorrected ones lose work, deferred ones are in memory that was not used yet.",
			queries: []query{gpu(", severity, location", grew(`accel_ecc_errors_total{`+inCards+`}`)+` > 0`, " {{severity}} {{location}}")},
		}),
	}
}
