#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Measures the processor time of small things, which a busy machine disturbs less than it does the clock on the wall.
struct Measurement {
    private static let rounds = 7

    /// What is measured.
    let name: String
    /// Nanoseconds of processor time for one operation, the median of several rounds.
    let nanoseconds: Double

    /// Runs a body that performs so many operations, several times.
    static func measure(_ name: String, operations: Int, _ body: () async throws -> Void) async rethrows -> Measurement
    {
        try await body()
        var samples: [Double] = []
        for _ in 0..<Self.rounds {
            let start = Self.processorNanoseconds()
            try await body()
            samples.append(Double(Self.processorNanoseconds() - start) / Double(operations))
        }
        samples.sort()
        return Measurement(name: name, nanoseconds: samples[samples.count / 2])
    }

    /// One line of a Markdown table.
    var row: String {
        let text = String(Int(self.nanoseconds.rounded()))
        return "| \(self.name) | \(text) ns |"
    }

    /// The whole process's processor time so far.
    private static func processorNanoseconds() -> Int {
        var time = timespec()
        // The call fills the structure it is handed and keeps no reference to it.
        unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
