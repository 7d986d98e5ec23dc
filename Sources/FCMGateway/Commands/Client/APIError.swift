import FCMModel
import Foundation

/// An answer other than success: problem details where the gateway sent them.
struct APIError: Error, Sendable, Equatable {
    /// The HTTP status.
    let status: Int

    /// The answer's request id, for the operator's logs.
    let requestID: String?

    /// The problem details; nil when something else answered.
    let problem: JSONValue?

    /// What the operator may do about it; nil where the gateway's own words are enough.
    var hint: String?

    /// The problem's code, or nil.
    var code: String? {
        self.problem?["code"]?.text
    }

    /// Whether the gateway itself says that nothing was done.
    var meansUndone: Bool {
        guard let code = self.code else { return false }
        return (400...499).contains(self.status) || code == OutcomeCode.auditUnavailable.rawValue
    }

    /// Why something failed, with what to do where nobody knows whether it was done all the same.
    static func doubting(_ error: any Error, _ advice: String) -> any Error {
        switch error {
        case var refusal as APIError:
            guard !refusal.meansUndone else { return refusal }
            refusal.hint = [refusal.hint, advice].compactMap(\.self).joined(separator: "\n")
            return refusal
        case let failure as CommandFailure: return CommandFailure("\(failure.message)\n\(advice)")
        default: return error
        }
    }
}

extension APIError: LocalizedError, CustomStringConvertible {
    /// The code, the detail, each field's error, and the request's id.
    var description: String {
        var lines: [String] = []
        if let problem = self.problem, let code = problem["code"]?.text {
            let detail = problem["detail"]?.text ?? problem["title"]?.text ?? "no detail"
            lines.append("\(JSONValue.printable(code)): \(JSONValue.printable(detail)) (HTTP \(self.status))")
            for error in problem["errors"]?.elements ?? [] {
                let pointer = error["pointer"]?.cell ?? ""
                lines.append("  \(pointer): \(error["detail"]?.cell ?? error.cell)")
            }
            if let seconds = problem["retry_after"]?.wholeNumber {
                lines.append("retry after: \(seconds) s")
            }
        } else {
            lines.append("HTTP \(self.status) without problem details; is this the gateway's address?")
        }
        if let hint = self.hint {
            lines.append(hint)
        }
        if let requestID = self.requestID {
            lines.append("request id: \(JSONValue.printable(requestID))")
        }
        return lines.joined(separator: "\n")
    }

    /// The same text.
    var errorDescription: String? { self.description }
}
