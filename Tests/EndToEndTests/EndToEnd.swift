import Testing

/// Tests of the real program: each starts it as a process and talks to it over the network.
///
/// Serialized, because many tests start, stop or load several programs and depend on timing.
@Suite("End to end", .serialized, .timeLimit(.minutes(20)))
enum EndToEnd {}
