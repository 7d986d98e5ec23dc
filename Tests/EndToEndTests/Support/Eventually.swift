/// Looks again and again until there is something to see, for as long as the suite's time limit allows.
///
/// - Parameter look: an exchange with another process, so that nothing spins; `nil` to look again.
/// - Returns: what was seen.
/// - Throws: what looking throws, and `CancellationError` when the test's time is up.
func eventually<Result>(_ look: () async throws -> Result?) async throws -> Result {
    while true {
        try Task.checkCancellation()
        if let result = try await look() { return result }
        await Task.yield()
    }
}

/// Looks again and again until something holds, for as long as the suite's time limit allows.
///
/// - Parameter isMet: an exchange with another process, so that nothing spins.
/// - Throws: as ``eventually(_:)``.
func wait(until isMet: () async throws -> Bool) async throws {
    try await eventually { try await isMet() ? () : nil }
}
