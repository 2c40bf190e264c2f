# Offline checks only: existing series are compared with the metric table by
# internal/repocheck.
# Three checks are off. alerts/comparison wants a threshold in each alert, and
# what these alerts look at exists only where something is wrong. group/interval
# warns of gaps in what a slow group records, which is not read outside the
# group but over ranges of hours. rule/dependency warns of a series that another
# group records: allocations may be as old as the group's interval.
checks {
  disabled = ["alerts/comparison", "group/interval", "rule/dependency"]
}

# Values that others choose, such as the job, are looked for by a part of them.
check "promql/regexp" {
  smelly = false
}

rule {
  match {
    kind = "alerting"
  }

  label "severity" {
    required = true
    value    = "critical|warning|info"
    severity = "bug"
  }

  annotation "summary" {
    required = true
    severity = "bug"
  }

  annotation "description" {
    required = true
    severity = "bug"
  }

  annotation "runbook_url" {
    required = true
    value    = "https://.+/docs/runbooks/.+\\.md"
    severity = "bug"
  }
}
