// Package alertmanager tells Alertmanagers of alerts, through their API v2.
//
//   - Every endpoint has a queue and a sender of its own: one that hangs delays
//     no other, and each is told of every alert.
//   - The queue holds the latest state of each alert, so it never grows beyond
//     the number of alerts, however long an Alertmanager is away; what it holds
//     is told as soon as the Alertmanager is back.
//   - What is dropped is counted by reason. An alert that an Alertmanager
//     refuses takes no other with it.
//   - Credentials are read from files before every request, and stand in no
//     error and no log.
//
// docs/alertmanager.md explains the settings.
package alertmanager
