extension AuditCheckpoint {
    private static let title = "fcm-gateway audit checkpoint 1"

    /// The text that is signed; every checkpoint has exactly one.
    package var text: [UInt8] {
        var lines = [
            Self.title,
            "number \(self.number)",
            "time \(self.time.microseconds)",
            "previous \(Hex.text(self.previous))",
            "anchor \(Hex.text(self.anchor))",
            "kept \(self.oldest) \(self.denseFrom)",
            "delivered \(self.delivered)",
            "settled \(self.settledWriter) \(Hex.text(self.settledDigest))",
            "removed \(self.removedWriter)",
        ]
        for head in self.heads {
            lines.append("head \(head.writer) \(head.sequence) \(Hex.text(head.hash)) \(head.state.rawValue)")
        }
        for cut in self.cuts {
            lines.append("cut \(cut.writer) \(cut.sequence) \(Hex.text(cut.hash))")
        }
        return Array((lines.joined(separator: "\n") + "\n").utf8)
    }

    /// The checkpoint of a text; `nil` for a text that none has.
    package init?(text: [UInt8]) {
        guard let whole = String(validating: text, as: UTF8.self) else { return nil }
        var lines = whole.split(separator: "\n", omittingEmptySubsequences: false)[...]
        guard lines.popFirst() == Self.title[...] else { return nil }
        func take(_ name: String, _ count: Int) -> [Substring]? {
            guard let words = lines.popFirst()?.split(separator: " ", omittingEmptySubsequences: false),
                words.count == count + 1, words[0] == name
            else { return nil }
            return Array(words.dropFirst())
        }
        guard let number = take("number", 1).flatMap({ Int($0[0]) }),
            let time = take("time", 1).flatMap({ Int64($0[0]) }),
            let previous = take("previous", 1).flatMap({ Hex.bytes($0[0]) }),
            let anchor = take("anchor", 1).flatMap({ Hex.bytes($0[0]) }),
            let kept = take("kept", 2), let oldest = Int(kept[0]), let denseFrom = Int(kept[1]),
            let delivered = take("delivered", 1).flatMap({ Int($0[0]) }),
            let settled = take("settled", 2), let settledWriter = Int(settled[0]),
            let settledDigest = Hex.bytes(settled[1]),
            let removedWriter = take("removed", 1).flatMap({ Int($0[0]) })
        else { return nil }
        (self.number, self.time) = (number, Timestamp(microseconds: time))
        (self.previous, self.anchor) = (previous, anchor)
        (self.oldest, self.denseFrom, self.delivered) = (oldest, denseFrom, delivered)
        (self.settledWriter, self.settledDigest, self.removedWriter) = (settledWriter, settledDigest, removedWriter)
        // Falsified numbers must not lead arithmetic astray.
        guard number > 0, oldest > 0, denseFrom > 0, settledWriter >= 0, (0...settledWriter).contains(removedWriter)
        else {
            return nil
        }
        (self.heads, self.cuts) = ([], [])
        for line in lines {
            let words = line.split(separator: " ", omittingEmptySubsequences: false)
            if words.count == 5, words[0] == "head", let head = Head(words) {
                self.heads.append(head)
            } else if words.count == 4, words[0] == "cut", let cut = Cut(words) {
                self.cuts.append(cut)
            }
        }
        // One comparison in place of a check of every line for its only form.
        guard self.text == text else { return nil }
    }
}

extension AuditCheckpoint.Head {
    fileprivate init?(_ words: [Substring]) {
        guard let writer = Int(words[1]), let sequence = Int(words[2]), let hash = Hex.bytes(words[3]),
            let state = AuditHead.State(rawValue: String(words[4]))
        else { return nil }
        self.init(writer: writer, sequence: sequence, hash: hash, state: state)
    }
}

extension AuditCheckpoint.Cut {
    fileprivate init?(_ words: [Substring]) {
        guard let writer = Int(words[1]), let sequence = Int(words[2]), let hash = Hex.bytes(words[3]) else {
            return nil
        }
        self.init(writer: writer, sequence: sequence, hash: hash)
    }
}
