import Foundation

/// A message to a device group: what becomes of each member.
struct GroupDelivery {
    /// Who receives it.
    let recipients: [Recipient]
    /// The members that take it, also where it is only checked.
    let accepted: [Recipient]
    /// The members that it fails for.
    let failed: [String]

    init(to group: GroupRegistry.Group, isDryRun: Bool, now: Date) {
        var recipients: [Recipient] = []
        var failed: [String] = []
        for member in group.members {
            switch TokenScript(token: member) {
            case .accepted: recipients.append(Recipient(token: member, messageID: MessageID.device(at: now)))
            case .failed: failed.append(member)
            }
        }
        self.accepted = recipients
        self.recipients = isDryRun ? [] : recipients
        self.failed = failed
    }

    /// The legacy protocol's answer to JSON: counts, and the members that failed.
    var json: Answer {
        let counts = #""success":\#(self.accepted.count),"failure":\#(self.failed.count)"#
        guard !self.failed.isEmpty else { return .json("{\(counts)}") }
        let failed = self.failed.map(JSONValue.quoted).joined(separator: ",")
        return .json(#"{\#(counts),"failed_registration_ids":[\#(failed)]}"#)
    }

    /// For the journal; nil when it reaches every member.
    var reason: String? {
        self.failed.isEmpty ? nil : "it fails for \(self.failed.count) of the group's members"
    }
}
