"""The word `advice`: which machines and cluster sizes should I use?"""
