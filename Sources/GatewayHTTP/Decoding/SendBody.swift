import FCMModel
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
    init(_ members: JSONMembers) throws(Problem) {
        var reader = SendBodyReader()
        for member in members {
            reader.read(member.key, member.value)
        }
        guard let target = reader.finishedTarget(), reader.problems.list.isEmpty else {
            throw Problem(reader.problems.list)
        }
        self.target = target
        self.message = reader.message
    }

    /// The target in FCM's own terms.
    ///
    /// - Throws: `not_found` for a device group, of which none is known.
    func directTarget() throws(Problem) -> Target {
        guard case .direct(let target) = self.target else {
            throw Problem(.notFound, "The tenant has no device group of this name")
        }
        return target
    }
}

/// A target as a caller names it.
enum SendBodyTarget {
    /// A target in FCM's own terms.
    case direct(Target)
    /// A device group by the name that the tenant gave it.
    case deviceGroup(String)
}
