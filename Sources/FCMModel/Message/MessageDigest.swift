import Crypto
import GatewaySupport
import StrictJSON

/// A SHA-256 of decoded values that does not depend on their spelling.
///
/// Members of objects and entries of `data` are sorted by the bytes of their names. Escapes are decoded, and numbers
/// are reduced to their value. Absent values are left out.
///
/// A tag precedes each value, and a length or count precedes everything of variable length. Different sequences of
/// values therefore never have the same bytes.
package struct MessageDigest {
    /// The types of a value, as ASCII characters, so that a dump of the bytes is readable.
    private enum Tag: UInt8 {
        case text = 0x22  // "
        case list = 0x5B  // [
        case object = 0x7B  // {
        case number = 0x23  // #
        case yes = 0x2B  // +
        case no = 0x2D  // -
        case null = 0x30  // 0
    }

    private var hash = SHA256()
    private var pending: [UInt8] = []

    package init() {
        self.pending.reserveCapacity(512)
    }

    package consuming func finish() -> [UInt8] {
        self.hash.update(data: self.pending)
        return Array(self.hash.finalize())
    }

    // MARK: Messages

    package mutating func add(_ target: Target) {
        self.add(target.kind.rawValue)
        switch target {
        case .token(let text), .installation(let text), .notificationKey(let text): self.add(text)
        case .deviceGroup(let name):
            self.add("name")
            self.add(name)
        case .tokens(let texts), .installations(let texts): self.add(texts)
        case .topic(let name): self.add(name.text)
        case .condition(let condition): self.add(condition.canonical)
        }
    }

    package mutating func add(_ message: Message) {
        self.add("notification", message.notification) { $0.add($1) }
        self.add("data", message.data.isEmpty ? nil : message.data) { digest, entries in
            digest.begin(.object, entries.count)
            for entry in entries.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
                digest.add(entry.key)
                digest.add(entry.value)
            }
        }
        self.add("priority", message.priority?.rawValue) { $0.add($1) }
        self.add("ttl", message.timeToLive) { $0.add($1) }
        self.add("collapse_key", message.collapseKey) { $0.add($1) }
        self.add("content_available", message.contentAvailable) { $0.add($1) }
        self.add("mutable_content", message.mutableContent) { $0.add($1) }
        self.add("restricted_package_name", message.restrictedPackageName) { $0.add($1) }
        self.add("dry_run", message.dryRun) { $0.add($1) }
        self.add("platforms", message.platforms) { $0.add($1.content) }
        self.add("v1", message.passThrough) { digest, members in
            // Parsing can't fail, because the members were written from a checked document.
            guard let root = (try? JSONDocument(parsing: members))?.root else { return }
            digest.add(root)
        }
    }

    private mutating func add(_ notification: Notification) {
        let texts = notification.texts.sorted { $0.key.rawValue < $1.key.rawValue }
        self.begin(.object, texts.count)
        for text in texts {
            self.add(text.key.rawValue)
            self.add(text.value)
        }
        self.add("badge", notification.badge) { $0.add($1) }
        self.add("title_loc_args", notification.titleLocArgs) { $0.add($1) }
        self.add("body_loc_args", notification.bodyLocArgs) { $0.add($1) }
    }

    private mutating func add<Value>(_ name: String, _ value: Value?, by adding: (inout MessageDigest, Value) -> Void) {
        guard let value else { return }
        self.add(name)
        adding(&self, value)
    }

    // MARK: Values

    package mutating func add(_ text: String) {
        self.begin(.text, text.utf8.count)
        self.pending.append(utf8: text)
    }

    private mutating func add(_ number: Int) {
        self.addNumber(String(number))
    }

    private mutating func add(_ flag: Bool) {
        self.pending.append((flag ? Tag.yes : .no).rawValue)
    }

    private mutating func add(_ texts: [String]) {
        self.begin(.list, texts.count)
        for text in texts { self.add(text) }
    }

    private mutating func add(_ value: JSONValue) {
        if let members = value.members {
            self.begin(.object, members.count)
            let sorted = members.map { (key: $0.key, value: $0.value) }
                .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            for member in sorted {
                self.add(member.key)
                self.add(member.value)
            }
        } else if let elements = value.elements {
            self.begin(.list, elements.count)
            for element in elements { self.add(element) }
        } else if let text = value.string {
            self.add(text)
        } else if let number = value.number {
            self.addNumber(number.canonicalText)
        } else if let flag = value.bool {
            self.add(flag)
        } else {
            self.pending.append(Tag.null.rawValue)
        }
    }

    // MARK: Bytes

    private mutating func addNumber(_ text: String) {
        self.begin(.number, text.utf8.count)
        self.pending.append(utf8: text)
    }

    private mutating func begin(_ tag: Tag, _ count: Int) {
        if self.pending.count >= 4_096 {
            self.hash.update(data: self.pending)
            self.pending.removeAll(keepingCapacity: true)
        }
        self.pending.append(tag.rawValue)
        self.pending.append(bigEndian: UInt32(clamping: count))
    }
}
