import Foundation

/// What a verb has to say.
struct CommandOutput: Sendable, Equatable {
    /// The answer, for standard output; a newline is added unless it is empty.
    var answer: String

    /// Remarks for standard error, which keep the answer clean for programs.
    var remark: String

    /// Whether the answer is a refusal, so that the process must exit with 1.
    var isRefusal: Bool

    /// States an answer.
    init(_ answer: String, remark: String = "", isRefusal: Bool = false) {
        self.answer = answer
        self.remark = remark
        self.isRefusal = isRefusal
    }

    /// Prints the answer and the remarks.
    func write() {
        Self.write(self.answer, to: .standardOutput)
        Self.write(self.remark, to: .standardError)
    }

    private static func write(_ text: String, to handle: FileHandle) {
        guard !text.isEmpty else { return }
        // A closed pipe, as `| head` leaves behind, is no reason to fail.
        try? handle.write(contentsOf: Data("\(text)\n".utf8))
    }
}
