// Package alertmanager sends alerts to Alertmanagers, through their API v2.
//
//   - Every endpoint has its own queue and sender and receives every alert: an
//     endpoint that hangs delays no other.
//   - The queue contains the latest state of each alert, so it never grows
//     beyond the number of alerts. While an Alertmanager is unreachable, its
//     queue is kept.
//   - Dropped alerts are counted by reason. An alert that an Alertmanager
//     refuses does not affect the others.
//   - Credentials are read from files before every request and appear in no
//     error and no log.
//
// docs/alertmanager.md explains the settings.
package alertmanager
