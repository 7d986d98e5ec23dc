import Testing

/// Tests of the real program: each starts it as a process of its own and talks to it over the network.
///
/// One after another, so that what one measures is not another one's load.
@Suite("End to end", .serialized, .timeLimit(.minutes(20)))
enum EndToEnd {}
