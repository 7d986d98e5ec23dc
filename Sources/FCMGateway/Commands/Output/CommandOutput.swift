import Foundation
import GatewayService

/// What a verb has to say.
struct CommandOutput: Sendable, Equatable {
    /// The answer, for standard output; a newline is added unless it is empty.
    var answer: String

    /// The answer for a terminal that shows colours; nil where it is the same.
    var colouredAnswer: String?

    /// Remarks for standard error, which keep the answer clean for programs.
    var remark: String

    /// Whether the answer is a refusal, so that the process must exit with 1.
    var isRefusal: Bool

    /// What to do when the answer can't be written, for one that can't be had again because it holds a secret; nil for
    /// others.
    var adviceIfLost: String?

    /// States an answer.
    init(_ answer: String, remark: String = "", isRefusal: Bool = false) {
        self.answer = answer
        self.remark = remark
        self.isRefusal = isRefusal
    }

    /// States an answer that has colours on a terminal.
    init(_ answer: StyledText, remark: String = "", isRefusal: Bool = false) {
        self.init(answer.plain, remark: remark, isRefusal: isRefusal)
        self.colouredAnswer = answer.coloured == answer.plain ? nil : answer.coloured
    }

    /// Prints the answer and the remarks.
    ///
    /// A reader who has gone, as `| head` does, is no failure, unless the answer can't be had again.
    ///
    /// - Throws: `CommandFailure` when the answer could not be written.
    func write() throws(CommandFailure) {
        let terminal = Terminal(.standardOutput, environment: ProcessInfo.processInfo.environment)
        let text = terminal.showsColour ? self.colouredAnswer ?? self.answer : self.answer
        var failure: StandardStream.Failure?
        if !text.isEmpty {
            do {
                try StandardStream.output.write("\(text)\n")
            } catch {
                failure = error
            }
        }
        // What is known beside a secret that was lost, such as its id, is what is needed to end it.
        self.writeRemark()
        if let failure { try self.report(failure) }
    }

    /// Prints the remarks alone; where these can't be written, nobody is left to be told.
    func writeRemark() {
        guard !self.remark.isEmpty else { return }
        try? StandardStream.errors.write("\(self.remark)\n")
    }

    private func report(_ failure: StandardStream.Failure) throws(CommandFailure) {
        if failure.isClosedPipe, self.adviceIfLost == nil { return }
        let advice = self.adviceIfLost.map { ". \($0)" } ?? ""
        throw CommandFailure("the answer can't be written to standard output: \(failure)\(advice)")
    }
}
