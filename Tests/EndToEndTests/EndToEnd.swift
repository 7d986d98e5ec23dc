import Testing

/// Tests of the real program: each starts it as a process of its own and talks to it over the network.
///
/// One after another: many of them start, stop or burden several programs, and look at what comes of it in time.
@Suite("End to end", .serialized, .timeLimit(.minutes(20)))
enum EndToEnd {}
