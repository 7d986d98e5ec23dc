import Foundation

/// The entry of libFuzzer's library without a `main` of its own (LLVM, FuzzerInterface.h).
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ callback: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// Hands inputs that libFuzzer makes to a target.
enum LibFuzzer {
    // Unsafe: a C function can't capture. Set once, before the only thread that reads it goes on.
    private nonisolated(unsafe) static var target: FuzzTarget?

    // Unsafe: only that thread uses it.
    private nonisolated(unsafe) static var slowest = Duration.milliseconds(1)

    /// Runs a target until libFuzzer ends.
    ///
    /// - Returns: the status to exit with.
    static func run(_ target: FuzzTarget, arguments: [String]) -> CInt {
        unsafe Self.target = target
        // To merge, libFuzzer starts this program again by the first word, through a shell.
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
                // libFuzzer takes the input of whatever stops the process for a finding.
                fatalError("\(error)")
            }
        }
    }

    /// Checks an input, and prints how long that took where it is the slowest so far and over a millisecond.
    ///
    /// Processor time, since other work on the machine counts for nothing. Page faults and caches count: what seems slow
    /// is checked again, and the fastest of four is what the input takes.
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

    /// The words of a target as libFuzzer reads them.
    static func dictionary(of target: FuzzTarget) -> String {
        target.words
            .map { word in
                "\"" + word.utf8.map { "\\x" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "\"\n"
            }
            .joined()
    }
}
