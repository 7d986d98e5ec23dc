import FCMModel
import GatewayCore
import StrictJSON

/// The body of a send, read and checked.
struct SendBody {
    /// Whom the message is for.
    var target: SendBodyTarget
    /// What it says.
    var message: Message

    /// Reads a body.
    ///
    /// - Throws: a problem with every field at fault.
    init(_ members: JSONMembers) throws(Refusal) {
        var reader = SendBodyReader()
        for member in members where !reader.problems.isFull {
            reader.read(member.key, member.value)
        }
        guard let target = reader.finishedTarget(), reader.problems.list.isEmpty else {
            throw Refusal(reader.problems.list)
        }
        self.target = target
        self.message = reader.message
    }

    /// The command to send this.
    func command(from principal: Principal, origin: RequestOrigin, deadline: ContinuousClock.Instant) -> SendCommand {
        self.target.command(
            from: principal,
            message: self.message,
            payloadBytes: self.message.payloadBytes,
            origin: origin,
            deadline: deadline
        )
    }
}

/// A target as a caller names it.
enum SendBodyTarget {
    /// A target in FCM's own terms.
    case direct(Target)
    /// A device group by the name that the tenant gave it.
    case deviceGroup(String)

    /// The command to send a message there.
    func command(
        from principal: Principal,
        message: Message,
        payloadBytes: Int,
        origin: RequestOrigin,
        deadline: ContinuousClock.Instant
    ) -> SendCommand {
        switch self {
        case .direct(let target):
            SendCommand(
                principal: principal,
                target: target,
                message: message,
                payloadBytes: payloadBytes,
                origin: origin,
                deadline: deadline
            )
        case .deviceGroup(let name):
            SendCommand(
                principal: principal,
                groupName: name,
                message: message,
                payloadBytes: payloadBytes,
                origin: origin,
                deadline: deadline
            )
        }
    }
}
