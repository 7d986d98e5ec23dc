/// Why a request to manage device groups is not carried out; always status 400.
enum GroupFailure: Error, Equatable {
    case alreadyExists
    case notFound
    case noValidTokens
    case damagedKey
    case tooMany
    /// The form of the request is wrong.
    case malformed(String)

    /// What the service says.
    var text: String {
        switch self {
        case .alreadyExists: "notification_key already exists"
        case .notFound: "notification_key not found"
        case .noValidTokens: "no valid registration ids"
        case .damagedKey: "Error decrypting GroupToken"
        case .tooMany: "a group has at most \(GroupRegistry.maxMembers) registration ids"
        case .malformed(let reason): reason
        }
    }

    var answer: Answer {
        .json(#"{"error":"# + JSONValue.quoted(self.text) + "}", status: 400)
    }
}
