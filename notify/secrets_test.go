package notify_test

// inDebug marks the test's own process with go-openapi's debugging on.
const inDebug = "ACCEL_TEST_DEBUG"
