import EventLoopHTTP
import FCMModel
import GatewayCore
import NIOCore
import StrictJSON

extension LegacyCredential {
    /// Reads the body that puts a server key.
    ///
    /// - Parameters:
    ///   - members: the body.
    ///   - plainHTTP: where the key may be sent without encryption.
    /// - Throws: a problem with every field at fault.
    init(_ members: JSONMembers, allowing plainHTTP: PlainHTTP) throws(Refusal) {
        var problems = FieldProblems()
        var serverKey: String?
        var endpoint: String?
        for member in members where !problems.isFull {
            let key = member.key
            func pointer() -> JSONPointer { JSONPointer().appending(key) }
            switch key.protocolWord {
            case "server_key":
                serverKey = problems.text(member.value, at: pointer())
                if let key = serverKey, key.utf8.count > 1_024 || !key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
                    problems.report(
                        .invalidField,
                        at: pointer(),
                        "A server key has at most 1024 characters, neither blanks nor controls"
                    )
                }
            case "endpoint":
                endpoint = problems.endpoint(member.value, at: pointer(), allowing: plainHTTP)
            default:
                problems.unknown(pointer())
            }
        }
        guard let serverKey, problems.list.isEmpty else {
            throw problems.orMissing("server_key")
        }
        self.init(serverKey: Secret(serverKey), endpoint: endpoint)
    }
}

extension ServiceAccountCredential {
    /// Reads the body that puts a service account.
    ///
    /// - Throws: a problem with every field at fault; of the account's own members, the first.
    convenience init(_ members: JSONMembers, allowing hosts: TokenHosts) throws(Refusal) {
        let accountPointer = JSONPointer().appending("service_account")
        var problems = FieldProblems()
        var account: JSONValue?
        var endpoint: String?
        for member in members where !problems.isFull {
            let key = member.key
            func pointer() -> JSONPointer { JSONPointer().appending(key) }
            switch key.protocolWord {
            case "service_account":
                if problems.members(member.value, at: pointer()) != nil { account = member.value }
            case "endpoint":
                endpoint = problems.endpoint(member.value, at: pointer(), allowing: hosts.plainHTTP)
            default:
                problems.unknown(pointer())
            }
        }
        guard let account, problems.list.isEmpty else {
            throw problems.orMissing("service_account")
        }
        // What files hold beside these is not kept, nor looked at any further.
        var writer = JSONWriter()
        writer.beginObject()
        for member in account.members.map(Array.init) ?? [] {
            guard let name = member.key.protocolWord, Self.fileMembers.contains(name) else { continue }
            guard member.value.string != nil else {
                problems.report(.invalidField, at: accountPointer.appending(name), "This must be a string")
                continue
            }
            writer.key(name)
            writer.value(member.value)
        }
        writer.endObject()
        guard problems.list.isEmpty else { throw Refusal(problems.list) }
        do {
            try self.init(json: Array(writer.finish().readableBytesView), endpoint: endpoint, allowing: hosts)
        } catch {
            let pointer = error.member.map { accountPointer.appending($0) } ?? accountPointer
            problems.report(.invalidField, at: pointer, error.message)
            throw Refusal(problems.list)
        }
    }
}

extension FieldProblems {
    /// The address of another server than the configured one.
    fileprivate mutating func endpoint(
        _ value: JSONValue,
        at pointer: JSONPointer,
        allowing plainHTTP: PlainHTTP
    ) -> String? {
        guard let endpoint = self.text(value, at: pointer) else { return nil }
        if HTTPOrigin(endpoint) == nil {
            self.report(.invalidField, at: pointer, "An endpoint is http(s)://host[:port] without a path")
        } else if !plainHTTP.admits(endpoint: endpoint) {
            self.report(.invalidField, at: pointer, "An endpoint must be https; \(PlainHTTP.exception)")
        }
        return endpoint
    }

    /// What was found, or else that a member is missing.
    fileprivate mutating func orMissing(_ member: String) -> Refusal {
        if self.list.isEmpty {
            self.report(.invalidField, at: JSONPointer().appending(member), "This must be given")
        }
        return Refusal(self.list)
    }
}
