/// Makes a plan's changes, one after the other.
///
/// A key that the gateway made is shown whatever happens after it: a change that fails, or a signal to stop.
struct TenantApplication {
    /// What is to be done.
    let plan: TenantPlan
    /// Whether all is said in one object at the end, or each change as it is made.
    let isJSON: Bool

    /// What was done so far.
    private struct Progress {
        var done: [TenantChange] = []
        var keys: [JSONValue] = []
        /// Why a call failed.
        var failure: (any Error)?
        /// Why what was made could not be said.
        var printFailure: (any Error)?
        var signal: StopSignal?
    }

    /// Makes the changes.
    ///
    /// - Parameters:
    ///   - reporter: Is told how far it has got.
    ///   - stop: The signal that asked to stop, once there was one; asked before each change.
    ///   - print: Takes what there is to say.
    ///   - call: Makes a call of the admin API.
    /// - Throws: What the first failed call threw, `Interruption`, or why something could not be printed.
    func run(
        reporter: ProgressReporter,
        stop: () -> StopSignal?,
        print: (CommandOutput) throws -> Void,
        call: (TenantChange.Call) async throws -> JSONValue
    ) async throws {
        var progress = Progress()
        for change in self.plan.changes {
            progress.signal = stop()
            if progress.signal != nil { break }
            reporter.report(progress.done.count, of: self.plan.changes.count)
            let key: JSONValue?
            do {
                key = Self.newKey(try await call(change.call), change)
            } catch {
                progress.failure = Self.explained(error, change)
                break
            }
            progress.done.append(change)
            if let key { progress.keys.append(key) }
            guard !self.isJSON else { continue }
            // Printed at once: a key that was made must not be lost with what comes after it.
            reporter.finish()
            do {
                try print(Self.output(change, key))
            } catch {
                progress.printFailure = error
                break
            }
        }
        reporter.finish()
        try self.conclude(progress, print)
    }

    private func conclude(_ progress: Progress, _ print: (CommandOutput) throws -> Void) throws {
        let missing = Array(self.plan.changes.dropFirst(progress.done.count))
        if self.isJSON {
            do {
                try print(try self.object(progress, missing: missing))
            } catch let failure as CommandFailure {
                let earlier = progress.failure.map { "\($0)\n" } ?? ""
                throw CommandFailure(earlier + failure.message)
            }
        }
        func summary(_ reason: String, _ advice: String) -> String {
            let list = missing.map { "  \($0.action.mark) \(JSONValue.printable($0.title))" }.joined(separator: "\n")
            return "\(TenantPlan.count(progress.done.count)) made; \(reason):\n\(list)\nWhat was made stays. \(advice)"
        }
        if let failure = progress.printFailure {
            if !missing.isEmpty {
                try self.remark(summary("these were not tried", "Apply the file again to go on."), print)
            }
            throw failure
        }
        if let failure = progress.failure {
            let reason = "the first of these failed, the others were not tried"
            try self.remark(summary(reason, "Mend the cause and apply the file again."), print)
            throw failure
        }
        if let signal = progress.signal {
            let reason = "\(signal) came, and these were not tried"
            throw Interruption(signal: signal, message: summary(reason, "Apply the file again to go on."))
        }
        let count = progress.done.count
        let end = count == 0 ? "nothing to change" : "\(TenantPlan.count(count)) made"
        let once = progress.keys.isEmpty ? [] : ["This is the only time the keys are shown."]
        try self.remark((self.plan.remarks + [end] + once).joined(separator: "\n"), print)
    }

    /// Remarks for people; programs find the same in the object.
    private func remark(_ text: String, _ print: (CommandOutput) throws -> Void) throws {
        if !self.isJSON { try print(CommandOutput("", remark: text)) }
    }

    private func object(_ progress: Progress, missing: [TenantChange]) throws -> CommandOutput {
        var members: [String: JSONValue] = [
            "dry_run": .bool(false), "changes": .array(progress.done.map { .object($0.json) }),
            "keys": .array(progress.keys), "not_made": .array(missing.map { .object($0.json) }),
            "remarks": .array(self.plan.remarks.map(JSONValue.string)),
        ]
        members["interrupted_by"] = progress.signal.map { .string("\($0)") }
        var output = CommandOutput(try JSONValue.object(members).prettyText())
        if !progress.keys.isEmpty {
            output.adviceIfLost = progress.keys.map(Self.adviceIfLost).joined(separator: ". ")
        }
        return output
    }

    private static func output(_ change: TenantChange, _ key: JSONValue?) -> CommandOutput {
        let secret = key.flatMap { $0["key"]?.text }.map { StyledText("    key: \(JSONValue.printable($0))") }
        var output = CommandOutput(StyledText(lines: [change.lines] + [secret].compactMap(\.self)))
        output.adviceIfLost = key.map(Self.adviceIfLost)
        return output
    }

    private static func adviceIfLost(_ key: JSONValue) -> String {
        KeyCommand.adviceIfLost(key["id"]?.text ?? "", tenant: key["tenant"]?.text ?? "")
    }

    /// Why a change failed; of a key that may have been made all the same, what to do about it.
    private static func explained(_ error: any Error, _ change: TenantChange) -> any Error {
        // What is imported can be imported again.
        guard change.makesKey else { return error }
        return APIError.doubting(
            error,
            "Whether the \(change.title) was made is not known: if fcm-gateway key list "
                + "\(change.tenant) shows it, revoke it before the file is applied again, since nobody has it."
        )
    }

    private static func newKey(_ answer: JSONValue, _ change: TenantChange) -> JSONValue? {
        guard change.object == .key, let key = answer["key"], let id = answer["id"] else { return nil }
        return .object([
            "tenant": .string(change.tenant), "name": .string(change.name ?? ""), "id": id, "key": key,
        ])
    }
}
