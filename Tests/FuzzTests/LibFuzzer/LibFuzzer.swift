import Foundation

/// The entry of libFuzzer's library without a `main` of its own (LLVM, FuzzerInterface.h).
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ callback: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// Passes libFuzzer's inputs to a target.
enum LibFuzzer {
    // Unsafe: a C function can't capture. It is set once, before the only thread that reads it continues.
    private nonisolated(unsafe) static var target: FuzzTarget?

    // Unsafe: only that thread uses it.
    private nonisolated(unsafe) static var slowest = Duration.milliseconds(1)

    /// Runs a target until libFuzzer ends.
    ///
    /// - Returns: the status to exit with.
    static func run(_ target: FuzzTarget, arguments: [String]) -> CInt {
        unsafe Self.target = target
        // To merge, libFuzzer starts this program again through a shell, with the first word as its command.
        let words = ["'\(CommandLine.arguments[0])' \(target.name)"] + arguments
        var count = CInt(words.count)
        // Unsafe: libFuzzer keeps C's arguments, which are never freed for that reason.
        var pointers = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: words.count + 1)
        for (index, word) in words.enumerated() { unsafe pointers[index] = strdup(word) }
        unsafe pointers[words.count] = nil
        return unsafe runDriver(&count, &pointers) { bytes, count in
            let input = unsafe [UInt8](UnsafeBufferPointer(start: bytes, count: count))
            do {
                try unsafe LibFuzzer.target.map { try LibFuzzer.check(input, $0) }
                return 0
            } catch {
                // libFuzzer records an input that stops the process as a finding.
                fatalError("\(error)")
            }
        }
    }

    /// Checks an input, and prints its time if it is the slowest so far and over a millisecond.
    ///
    /// The time is processor time, which excludes other work on the machine but includes page faults. A slow input is
    /// therefore checked again, and the fastest of four runs counts.
    private static func check(_ input: [UInt8], _ target: FuzzTarget) throws {
        var took = try Self.processorTime { try target.check(input) }
        guard unsafe took > Self.slowest else { return }
        for _ in 0..<3 { took = try min(took, Self.processorTime { try target.check(input) }) }
        guard unsafe took > Self.slowest else { return }
        unsafe Self.slowest = took
        let microseconds = took / .microseconds(1)
        FileHandle.standardError.write(Data("slowest: \(Int(microseconds)) us, \(input.count) bytes\n".utf8))
        if took > target.maxTime { throw FuzzFinding("took \(Int(microseconds)) us of processor time") }
    }

    private static func processorTime(_ body: () throws -> Void) rethrows -> Duration {
        // In microseconds by POSIX.
        let start = clock()
        try body()
        return .microseconds(clock() - start)
    }

    /// A target's words in the format of libFuzzer's dictionaries.
    static func dictionary(of target: FuzzTarget) -> String {
        target.words
            .map { word in
                "\"" + word.utf8.map { "\\x" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "\"\n"
            }
            .joined()
    }
}
