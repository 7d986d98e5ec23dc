/// A request to manage device groups whose form is valid.
enum GroupCommand: Sendable, Equatable {
    case lookUp(name: String, sender: String)
    case create(name: String, sender: String, tokens: [String])
    case add(key: String, name: String?, sender: String, tokens: [String])
    case remove(key: String, name: String?, sender: String, tokens: [String])
}

/// The device groups, and their keys.
struct GroupRegistry {
    struct Group: Sendable, Equatable {
        let sender: String
        let name: String
        var members: [String]
    }

    enum Meaning: Equatable {
        case group(Group)
        case dead
        case none
    }

    private struct Name: Hashable {
        let sender: String
        let name: String
    }

    static let maxMembers = 20
    private static let keyMark = "APA91bEmulator-"
    var invalidTokens: Set<String> = []
    private var groups: [Int: Group] = [:]
    private var numbers: [Name: Int] = [:]
    private var lastNumber = 0

    var all: [Group] {
        self.groups.values.sorted { ($0.sender, $0.name) < ($1.sender, $1.name) }
    }

    func group(named name: String, sender: String) -> Group? {
        self.numbers[Name(sender: sender, name: name)].flatMap { self.groups[$0] }
    }

    func meaning(of key: String) -> Meaning {
        guard let number = Self.number(in: key), number <= self.lastNumber else { return .none }
        return self.groups[number].map { .group($0) } ?? .dead
    }

    /// Deletes a group with all its members.
    mutating func delete(named name: String, sender: String) -> Bool {
        guard let number = self.numbers.removeValue(forKey: Name(sender: sender, name: name)) else { return false }
        self.groups[number] = nil
        return true
    }

    mutating func perform(_ command: GroupCommand) throws(GroupFailure) -> String {
        switch command {
        case .lookUp(let name, let sender):
            guard let number = self.numbers[Name(sender: sender, name: name)] else { throw .notFound }
            return Self.key(of: number)
        case .create(let name, let sender, let tokens):
            let name = Name(sender: sender, name: name)
            guard self.numbers[name] == nil else { throw .alreadyExists }
            let members = try self.valid(tokens)
            self.lastNumber += 1
            self.groups[self.lastNumber] = Group(sender: sender, name: name.name, members: members)
            self.numbers[name] = self.lastNumber
            return Self.key(of: self.lastNumber)
        case .add(let key, let name, let sender, let tokens):
            let (number, group) = try self.find(key, name: name, sender: sender)
            let members = group.members + (try self.valid(tokens)).filter { !group.members.contains($0) }
            guard members.count <= Self.maxMembers else { throw .tooMany }
            self.groups[number]?.members = members
            return Self.key(of: number)
        case .remove(let key, let name, let sender, let tokens):
            let (number, group) = try self.find(key, name: name, sender: sender)
            let leaving = try self.valid(tokens)
            let members = group.members.filter { !leaving.contains($0) }
            self.groups[number]?.members = members
            // Without its last member, a group is deleted.
            if members.isEmpty { _ = self.delete(named: group.name, sender: sender) }
            return Self.key(of: number)
        }
    }

    private func find(_ key: String, name: String?, sender: String) throws(GroupFailure) -> (Int, Group) {
        guard let number = Self.number(in: key) else { throw .damagedKey }
        guard let group = self.groups[number], group.sender == sender, name == nil || group.name == name else {
            throw .notFound
        }
        return (number, group)
    }

    /// Returns the distinct tokens that can be members; drops invalid ones silently if at least one is valid.
    private func valid(_ tokens: [String]) throws(GroupFailure) -> [String] {
        var valid: [String] = []
        for token in tokens where !self.isInvalid(token) && !valid.contains(token) {
            valid.append(token)
        }
        guard !valid.isEmpty else { throw .noValidTokens }
        guard valid.count <= Self.maxMembers else { throw .tooMany }
        return valid
    }

    private func isInvalid(_ token: String) -> Bool {
        guard !self.invalidTokens.contains(token), !token.hasPrefix(TopicName.prefix) else { return true }
        guard case .failed(let name) = TokenScript(token: token) else { return false }
        return name == LegacyErrorName.invalidRegistration.rawValue || name == "INVALID_ARGUMENT"
    }

    private static func key(of number: Int) -> String {
        "\(Self.keyMark)\(number)-\(String(UInt64.random(in: .min ... .max), radix: 36))"
    }

    private static func number(in key: String) -> Int? {
        guard key.hasPrefix(Self.keyMark) else { return nil }
        let parts = key.dropFirst(Self.keyMark.count).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[1].isEmpty else { return nil }
        return Int(parts[0])
    }
}
