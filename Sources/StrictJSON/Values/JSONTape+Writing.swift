import NIOCore

extension JSONTape {
    private enum Step {
        case element(Int, isFirst: Bool)
        case member(Int, isFirst: Bool)
        case close(UInt8)
    }

    /// Writes a value as JSON without blanks.
    ///
    /// - Parameters:
    ///   - index: The value's node.
    ///   - output: Where to write.
    ///   - isCanonical: Whether members are ordered by the code points of their names and strings escaped no more than
    ///     they must be; else both stay as they are.
    func write(_ index: Int, to output: inout ContiguousArray<UInt8>, isCanonical: Bool) {
        // What is still to be written, the next piece last: the input's depth must not become the stack's.
        var pending = [Step.element(index, isFirst: true)]
        while let step = pending.popLast() {
            let node: Int
            switch step {
            case .close(let bracket):
                output.append(bracket)
                continue
            case .element(let element, let isFirst):
                if !isFirst {
                    output.append(UInt8(ascii: ","))
                }
                node = element
            case .member(let key, let isFirst):
                if !isFirst {
                    output.append(UInt8(ascii: ","))
                }
                self.writeScalar(key, to: &output, isCanonical: isCanonical)
                output.append(UInt8(ascii: ":"))
                node = key + 1
            }
            switch self.nodes[node].kind {
            case .object:
                output.append(UInt8(ascii: "{"))
                pending.append(.close(UInt8(ascii: "}")))
                let keys = isCanonical ? self.sortedKeys(of: node) : self.keys(of: node)
                for (position, key) in keys.enumerated().reversed() {
                    pending.append(.member(key, isFirst: position == 0))
                }
            case .array:
                output.append(UInt8(ascii: "["))
                pending.append(.close(UInt8(ascii: "]")))
                for (position, element) in self.elements(of: node).enumerated().reversed() {
                    pending.append(.element(element, isFirst: position == 0))
                }
            case .string, .number, .bool, .null:
                self.writeScalar(node, to: &output, isCanonical: isCanonical)
            }
        }
    }

    private func writeScalar(_ index: Int, to output: inout ContiguousArray<UInt8>, isCanonical: Bool) {
        let node = self.nodes[index]
        if node.kind == .string {
            output.append(UInt8(ascii: "\""))
            if node.flag, isCanonical {
                // The text may escape more than is written, or differently.
                JSONStringEncoder.write(self.string(at: index), to: &output)
            } else {
                self.writeBytes(of: node, to: &output)
            }
            output.append(UInt8(ascii: "\""))
        } else {
            self.writeBytes(of: node, to: &output)
        }
    }

    private func writeBytes(of node: JSONNode, to output: inout ContiguousArray<UInt8>) {
        // Never nil: the node was made from these bytes.
        let start = self.bytes.readerIndex + Int(node.start)
        guard let bytes = self.bytes.viewBytes(at: start, length: Int(node.extent)) else { return }
        output.append(contentsOf: bytes)
    }

    private func elements(of array: Int) -> [Int] {
        var elements: [Int] = []
        elements.reserveCapacity(Int(self.nodes[array].extent))
        var element = array + 1
        while element < Int(self.nodes[array].end) {
            elements.append(element)
            element = Int(self.nodes[element].end)
        }
        return elements
    }

    private func keys(of object: Int) -> [Int] {
        var keys: [Int] = []
        keys.reserveCapacity(Int(self.nodes[object].extent))
        var key = object + 1
        while key < Int(self.nodes[object].end) {
            keys.append(key)
            key = Int(self.nodes[key + 1].end)
        }
        return keys
    }

    private func sortedKeys(of object: Int) -> [Int] {
        // UTF-8 sorts like the code points it encodes; `String` itself would compare normalised forms.
        self.keys(of: object)
            .map { (index: $0, name: self.string(at: $0)) }
            .sorted { Self.precedes($0.name.utf8.span, $1.name.utf8.span) }
            .map(\.index)
    }

    /// Compares byte by byte, eight at a time: names may be long and alike.
    private static func precedes(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        let count = min(left.count, right.count)
        var position = 0
        while position &+ 8 <= count {
            let (leftWord, rightWord) = (left.word(at: position), right.word(at: position))
            guard leftWord == rightWord else { return leftWord.byteSwapped < rightWord.byteSwapped }
            position &+= 8
        }
        while position < count {
            guard left[position] == right[position] else { return left[position] < right[position] }
            position &+= 1
        }
        return left.count < right.count
    }
}
