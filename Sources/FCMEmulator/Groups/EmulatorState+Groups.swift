import Synchronization

/// Device groups.
extension EmulatorState {
    /// Carries a request out and records it.
    ///
    /// - Returns: the answer.
    func conclude(_ request: ReceivedRequest, id: Int?, _ command: GroupCommand) -> Answer {
        let (answer, entry) = self.contents.withLock { contents -> (Answer, JournalEntry?) in
            let decision: JournalDecision
            let answer: Answer
            do throws(GroupFailure) {
                let key = try contents.groups.perform(command)
                answer = .json(#"{"notification_key":"# + JSONValue.quoted(key) + "}")
                decision = JournalDecision(answer: answer)
            } catch {
                answer = error.answer
                decision = JournalDecision(answer: answer, reason: error.text)
            }
            return (answer, contents.close(request, id: id, decision: decision))
        }
        self.announce(entry)
        return answer
    }

    /// All groups.
    var groups: [GroupRegistry.Group] { self.contents.withLock { $0.groups.all } }

    /// The members of a group; nil where there is none.
    func members(ofGroup name: String, sender: String) -> [String]? {
        self.contents.withLock { $0.groups.group(named: name, sender: sender)?.members }
    }

    /// Deletes a group.
    ///
    /// - Returns: whether there was one.
    func deleteGroup(named name: String, sender: String) -> Bool {
        self.contents.withLock { $0.groups.delete(named: name, sender: sender) }
    }

    /// Says which tokens no group takes.
    func refuse(tokens: Set<String>) {
        self.contents.withLock { $0.groups.invalidTokens = tokens }
    }
}
