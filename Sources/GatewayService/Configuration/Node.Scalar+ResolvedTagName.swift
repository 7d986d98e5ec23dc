package import Yams

extension Node.Scalar {
    /// The tag YAML gives the scalar: the one written, or the one its text implies when it is unquoted.
    package var resolvedTagName: Tag.Name {
        Tag.Name(rawValue: Node.scalar(self).tag.rawValue)
    }
}
